-- A tenant has an identity that never comes again; a data key is noted before it is used; a snapshot is written beside
-- the one that it replaces.

-- What a role that owns the tables, and not only a superuser, must see of all tenants here.
ALTER TABLE perdure.tenant NO FORCE ROW LEVEL SECURITY;
ALTER TABLE perdure.space NO FORCE ROW LEVEL SECURITY;

-- What stands for a tenant of a name, or for a log beside its own, in all other tables. It is made with the tenant and
-- goes with it: so nothing of a tenant that was deleted is ever taken for that of another one of its name.
CREATE TABLE perdure.naming (
    tenant uuid PRIMARY KEY,          -- a digest of the name
    own uuid NOT NULL
);
INSERT INTO perdure.naming (tenant, own) SELECT tenant, tenant FROM perdure.tenant;
ALTER TABLE perdure.naming ENABLE ROW LEVEL SECURITY;
ALTER TABLE perdure.naming FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON perdure.naming USING (tenant = nullif(current_setting('app.tenant', true), '')::uuid);

-- The highest number of a data key that anything of the space was ever sealed under.
ALTER TABLE perdure.space ADD COLUMN newest_key int8 NOT NULL DEFAULT 0;
UPDATE perdure.space SET newest_key = key WHERE tenant IS NOT NULL;

-- Under another name: whoever takes every row for a key to be destroyed, as version 1 did, must not find these.
ALTER TABLE perdure.condemned RENAME TO key_note;
-- False of a key that was made for a transaction, which takes the row away as it is committed: where that failed, or its
-- process died, the key is to be destroyed like the others.
ALTER TABLE perdure.key_note ADD COLUMN doomed boolean NOT NULL DEFAULT true;
-- Where the key is for a snapshot: of what it is to be taken. Zeros where it is for records.
ALTER TABLE perdure.key_note ADD COLUMN space int8 NOT NULL DEFAULT 0;
ALTER TABLE perdure.key_note ADD COLUMN epoch int8 NOT NULL DEFAULT 0;
ALTER TABLE perdure.key_note ADD COLUMN erasures int8 NOT NULL DEFAULT 0;

-- Tells the parts of a snapshot from those of the one before, while both are there.
ALTER TABLE perdure.cache ADD COLUMN made uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE perdure.cache_part ADD COLUMN made uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE perdure.cache_part DROP CONSTRAINT cache_part_pkey;
ALTER TABLE perdure.cache_part ADD PRIMARY KEY (tenant, space, name, made, part);

ALTER TABLE perdure.tenant FORCE ROW LEVEL SECURITY;
ALTER TABLE perdure.space FORCE ROW LEVEL SECURITY;
