-- The log of many tenants. Every key begins with the tenant, so that the tables can be distributed by it; nothing here
-- depends on another tenant's rows.

CREATE SCHEMA IF NOT EXISTS perdure;

-- One row a version that was applied.
CREATE TABLE perdure.schema_version (
    version int8 PRIMARY KEY
);

-- One row a tenant; locked by whoever creates a space, purges, or keeps all writers out.
CREATE TABLE perdure.tenant (
    tenant uuid PRIMARY KEY,
    name text NOT NULL,
    verifier bytea NOT NULL,          -- tells whether a keystore is this tenant's; of no use without it
    encrypted boolean NOT NULL,
    epoch int8 NOT NULL,
    spaces int8 NOT NULL,             -- numbers that were given out since the last purge
    keys_from int8 NOT NULL,          -- data keys of a lower number are of the time before the last purge
    destroyed_below int8 NOT NULL,    -- up to where their holders confirmed that they are gone
    stained boolean NOT NULL,         -- something was erased that lies about unencrypted
    buried boolean NOT NULL           -- its rows were deleted, its keys may be there still
);

-- Where each space stands; locked by whoever writes to it.
CREATE TABLE perdure.space (
    tenant uuid NOT NULL,
    space int8 NOT NULL,
    name bytea,                       -- a keyed hash; absent once record 1 is erased
    epoch int8 NOT NULL,
    seq int8 NOT NULL,
    erasures int8 NOT NULL,
    digest bytea NOT NULL,
    key int8 NOT NULL,                -- the data key of the last records; 0 where nothing is encrypted
    bytes int8 NOT NULL,              -- of its records
    PRIMARY KEY (tenant, space)
);
CREATE UNIQUE INDEX space_name ON perdure.space (tenant, name);

CREATE TABLE perdure.record (
    tenant uuid NOT NULL,
    space int8 NOT NULL,
    epoch int8 NOT NULL,
    seq int8 NOT NULL,
    key int8 NOT NULL,
    data bytea,                       -- absent once erased
    PRIMARY KEY (tenant, space, epoch, seq)
);
ALTER TABLE perdure.record ALTER COLUMN data SET STORAGE EXTERNAL;

-- Exact lookups: keyed hashes, and the records that they lead to.
CREATE TABLE perdure.lookup (
    tenant uuid NOT NULL,
    space int8 NOT NULL,
    epoch int8 NOT NULL,
    hash bytea NOT NULL,
    seq int8 NOT NULL,
    PRIMARY KEY (tenant, space, epoch, hash)
);

-- Derived snapshots; may be dropped at any time.
CREATE TABLE perdure.cache (
    tenant uuid NOT NULL,
    space int8 NOT NULL,
    name text NOT NULL,
    epoch int8 NOT NULL,
    seq int8 NOT NULL,
    erasures int8 NOT NULL,
    digest bytea NOT NULL,
    key int8 NOT NULL,
    parts int8 NOT NULL,
    size int8 NOT NULL,
    PRIMARY KEY (tenant, space, name)
);
CREATE TABLE perdure.cache_part (
    tenant uuid NOT NULL,
    space int8 NOT NULL,
    name text NOT NULL,
    part int8 NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, space, name, part)
);
ALTER TABLE perdure.cache_part ALTER COLUMN data SET STORAGE EXTERNAL;

-- Data keys that open nothing any more and are still to be destroyed.
CREATE TABLE perdure.condemned (
    tenant uuid NOT NULL,
    key int8 NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- Moments at which copies were noted.
CREATE TABLE perdure.copy_note (
    tenant uuid NOT NULL,
    number int8 NOT NULL,
    at int8 NOT NULL,
    PRIMARY KEY (tenant, number)
);

-- The second fence: a session that has not said whose rows it is about sees none, whoever owns the tables.
ALTER TABLE perdure.tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.tenant FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.tenant USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.space ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.space FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.space USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.record ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.record FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.record USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.lookup ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.lookup FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.lookup USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.cache ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.cache FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.cache USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.cache_part ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.cache_part FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.cache_part USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.condemned ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.condemned FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.condemned USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
ALTER TABLE perdure.copy_note ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.copy_note FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.copy_note USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);
