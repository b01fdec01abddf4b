-- Every statement of the log, each under its name. Parameters are those of the driver.

-- name: set_session
-- What a connection begins with, in one round trip. Warnings are heard whatever the role or the database is set to: that a
-- commit did not wait for its standby is told by one.
SELECT set_config('statement_timeout', %s::text, false), set_config('lock_timeout', %s::text, false),
    set_config('idle_in_transaction_session_timeout', %s::text, false), set_config('tcp_keepalives_idle', %s::text, false),
    set_config('tcp_keepalives_interval', %s::text, false), set_config('tcp_keepalives_count', %s::text, false),
    set_config('tcp_user_timeout', %s::text, false), set_config('client_min_messages', 'warning', false)

-- name: set_tenant
-- Says whose rows this session is about, until it is said otherwise.
SELECT set_config('app.tenant', %s::text, false)

-- name: set_tenant_everywhere
-- The same where a database hands its statements on to others, which it does not with functions. A UUID in quotes follows.
SET LOCAL app.tenant =

-- name: set_lock_wait
SELECT set_config('lock_timeout', %s::text, true)

-- name: set_statement_wait
SELECT set_config('statement_timeout', %s::text, true)

-- name: set_idle_wait
SELECT set_config('idle_in_transaction_session_timeout', %s::text, true)

-- name: set_lazy_commit
-- For a transaction that need not be on the disk before another one that is told after it.
SELECT set_config('synchronous_commit', 'off', true)

-- name: find_tenant
-- Nobody's secret is that of one that is buried.
SELECT CASE WHEN buried THEN ''::bytea ELSE verifier END, encrypted, epoch FROM perdure.tenant WHERE tenant = %s

-- name: identity
-- What stands for the tenant, or the log beside it, that has the name of this digest now.
SELECT own FROM perdure.naming WHERE tenant = %s

-- name: name_tenant
-- Yields a row where nobody was faster.
INSERT INTO perdure.naming (tenant, own) VALUES (%s, %s) ON CONFLICT (tenant) DO NOTHING RETURNING own

-- name: unname_tenant
-- Not where the name has gone to another one since.
DELETE FROM perdure.naming WHERE tenant = %s AND own = %s

-- name: tenant_to_drop
SELECT verifier, encrypted, buried FROM perdure.tenant WHERE tenant = %s

-- name: add_tenant
INSERT INTO perdure.tenant (tenant, name, verifier, encrypted, epoch, spaces, keys_from, destroyed_below, stained,
                            buried)
VALUES (%s, %s, %s, %s, 0, 0, 1, 1, false, false) ON CONFLICT (tenant) DO NOTHING

-- name: tenant_state
SELECT epoch, spaces, keys_from, destroyed_below, stained FROM perdure.tenant WHERE tenant = %s

-- name: pass_tenant
-- In a transaction of its own before that of a write: waits for whoever waits to keep all writers out, who else would wait
-- for ever new ones.
SELECT tenant FROM perdure.tenant WHERE tenant = %s FOR SHARE

-- name: hold_tenant
-- Writers that are at work go on, and nobody passes.
SELECT tenant FROM perdure.tenant WHERE tenant = %s FOR NO KEY UPDATE

-- name: share_tenant
-- Lets other writers go on, and waits for whoever keeps them all out; nothing where it was deleted and made again.
SELECT epoch, keys_from FROM perdure.tenant WHERE tenant = %s AND verifier = %s AND NOT buried FOR KEY SHARE

-- name: share_row
-- Of one that is buried too: what its rows were may be all that a standby knows of.
SELECT 1 FROM perdure.tenant WHERE tenant = %s FOR KEY SHARE

-- name: number_spaces
-- Creators of spaces, and whoever notes a copy, take turns. Writers that are at work go on; those that come wait in passing.
SELECT epoch, spaces, keys_from FROM perdure.tenant WHERE tenant = %s AND verifier = %s AND NOT buried FOR NO KEY UPDATE

-- name: own_tenant
-- Whether it is there still, and the one that was opened.
SELECT 1 FROM perdure.tenant WHERE tenant = %s AND verifier = %s AND NOT buried

-- name: lock_tenant
SELECT epoch, spaces, keys_from, destroyed_below, stained FROM perdure.tenant WHERE tenant = %s FOR UPDATE

-- name: count_spaces
UPDATE perdure.tenant SET spaces = %s WHERE tenant = %s

-- name: stain_tenant
-- Before what is erased is: it is known by then that it will lie about.
UPDATE perdure.tenant SET stained = true WHERE tenant = %s AND NOT stained

-- name: note_purge
UPDATE perdure.tenant SET epoch = %s, spaces = %s, keys_from = %s WHERE tenant = %s

-- name: note_destroyed
UPDATE perdure.tenant SET destroyed_below = %s WHERE tenant = %s AND destroyed_below < %s

-- name: spaces
SELECT space FROM perdure.space WHERE tenant = %s ORDER BY space

-- name: space_of_name
SELECT space FROM perdure.space WHERE tenant = %s AND name = %s

-- name: head
SELECT epoch, seq, erasures, digest FROM perdure.space WHERE tenant = %s AND space = %s

-- name: head_of_name
SELECT epoch, seq, erasures, digest FROM perdure.space WHERE tenant = %s AND name = %s

-- name: looks
-- Where spaces of these numbers stand, and those of these names.
SELECT space, NULL::bytea, epoch, seq, erasures, digest FROM perdure.space WHERE tenant = %s AND space = ANY(%s::int8[])
UNION ALL
SELECT space, name, epoch, seq, erasures, digest FROM perdure.space WHERE tenant = %s AND name = ANY(%s::bytea[])

-- name: lock_head
SELECT epoch, seq, erasures, digest, key FROM perdure.space WHERE tenant = %s AND space = %s FOR UPDATE

-- name: share_head
-- Others may share it; whoever appends to the space, or erases of it, waits.
SELECT epoch, seq, erasures, digest FROM perdure.space WHERE tenant = %s AND space = %s FOR SHARE

-- name: all_heads
SELECT space, name, epoch, seq, erasures, digest FROM perdure.space WHERE tenant = %s ORDER BY space

-- name: add_space
INSERT INTO perdure.space (tenant, space, name, epoch, seq, erasures, digest, key, newest_key, bytes)
VALUES (%s, %s, %s, %s, %s, 0, %s, %s, %s, %s)

-- name: move_head
UPDATE perdure.space SET seq = %s, erasures = %s, digest = %s, key = %s, newest_key = greatest(newest_key, %s),
    bytes = bytes + %s
WHERE tenant = %s AND space = %s

-- name: raise_newest_key
UPDATE perdure.space SET newest_key = greatest(newest_key, %s) WHERE tenant = %s AND space = %s

-- name: drop_name
UPDATE perdure.space SET name = NULL WHERE tenant = %s AND space = %s

-- name: records_between
-- Of the epoch that the space is of.
SELECT seq, key, data FROM perdure.record
WHERE tenant = %s AND space = %s AND epoch = (SELECT epoch FROM perdure.space WHERE tenant = %s AND space = %s)
    AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s

-- name: records_of
SELECT seq, key, data FROM perdure.record
WHERE tenant = %s AND space = %s AND epoch = %s AND seq > %s AND seq <= %s ORDER BY seq

-- name: keys_of
SELECT DISTINCT key FROM perdure.record WHERE tenant = %s AND space = %s AND epoch = %s AND seq = ANY(%s)

-- name: head_and_records
-- Where a space stands and some of its records, as of one moment. A head comes also where there is no such record.
SELECT s.epoch, s.seq, s.erasures, s.digest, r.seq, r.key, r.data
FROM perdure.space s LEFT JOIN perdure.record r
    ON r.tenant = s.tenant AND r.space = s.space AND r.epoch = s.epoch AND r.seq = ANY(%s)
WHERE s.tenant = %s AND s.space = %s

-- name: found
SELECT l.hash, l.seq FROM perdure.space s JOIN perdure.lookup l
    ON l.tenant = s.tenant AND l.space = s.space AND l.epoch = s.epoch
WHERE s.tenant = %s AND s.space = %s AND l.hash = ANY(%s)

-- name: record_row
(%s, %s, %s, %s, %s, %s)

-- name: add_records
-- Followed by one row or more.
INSERT INTO perdure.record (tenant, space, epoch, seq, key, data) VALUES

-- name: lookup_row
(%s, %s, %s, %s, %s)

-- name: add_lookups
INSERT INTO perdure.lookup (tenant, space, epoch, hash, seq) VALUES

-- name: newer_wins
ON CONFLICT (tenant, space, epoch, hash) DO UPDATE SET seq = excluded.seq

-- name: erase_records
UPDATE perdure.record SET data = NULL, key = 0
WHERE tenant = %s AND space = %s AND epoch = %s AND seq = ANY(%s)

-- name: rewrite_records
-- The data stand in one array by their numbers, which begin behind the third parameter. An UPDATE ... FROM takes twice as
-- long, and distributed databases refuse some of its forms; a statement for each record takes five times as long.
UPDATE perdure.record SET key = %s, data = (%s::bytea[])[(seq - %s)::int4]
WHERE tenant = %s AND space = %s AND epoch = %s AND seq = ANY(%s)

-- name: note_row
(%s, %s, false, %s, %s, %s)

-- name: add_notes
INSERT INTO perdure.key_note (tenant, key, doomed, space, epoch, erasures) VALUES

-- name: already_noted
-- By somebody who was given the same number, out of an older copy of the keystore: one of the two will claim it.
ON CONFLICT (tenant, key) DO NOTHING

-- name: claim
DELETE FROM perdure.key_note WHERE tenant = %s AND key = ANY(%s) AND NOT doomed RETURNING key

-- name: claim_snapshot
-- Of a space whose row is locked: nothing where it was erased in, or purged, since the snapshot was taken.
DELETE FROM perdure.key_note n WHERE n.tenant = %s AND n.key = ANY(%s) AND NOT n.doomed AND EXISTS (
    SELECT 1 FROM perdure.space s
    WHERE s.tenant = n.tenant AND s.space = n.space AND s.epoch = n.epoch AND s.erasures = n.erasures)
RETURNING n.key

-- name: unclaimed
-- Notes that no transaction has claimed, but for those of snapshots that may still be taken into use. Whoever dooms them
-- as well does not hide them: that is no more than the lock here allows, and a claim is.
SELECT n.key FROM perdure.key_note n
WHERE n.tenant = %s AND NOT n.doomed AND NOT EXISTS (
    SELECT 1 FROM perdure.space s
    WHERE s.tenant = n.tenant AND s.space = n.space AND s.epoch = n.epoch AND s.erasures = n.erasures)
ORDER BY n.key FOR KEY SHARE OF n SKIP LOCKED

-- name: unclaimed_of
SELECT key FROM perdure.key_note WHERE tenant = %s AND key = ANY(%s) AND NOT doomed
ORDER BY key FOR KEY SHARE SKIP LOCKED

-- name: doom
UPDATE perdure.key_note SET doomed = true WHERE tenant = %s AND key = ANY(%s) AND NOT doomed

-- name: condemn
INSERT INTO perdure.key_note (tenant, key) VALUES (%s, %s) ON CONFLICT (tenant, key) DO UPDATE SET doomed = true

-- name: condemn_all
-- Followed by one row or more.
INSERT INTO perdure.key_note (tenant, key) VALUES

-- name: doomed_row
(%s, %s)

-- name: is_doomed
ON CONFLICT (tenant, key) DO UPDATE SET doomed = true

-- name: condemn_caches
INSERT INTO perdure.key_note (tenant, key) SELECT tenant, key FROM perdure.cache WHERE tenant = %s AND space = %s AND key > 0
ON CONFLICT (tenant, key) DO UPDATE SET doomed = true

-- name: condemned
SELECT key, doomed FROM perdure.key_note WHERE tenant = %s ORDER BY key

-- name: newest_keys
-- Numbers of data keys that are in use, or were.
SELECT (SELECT max(newest_key) FROM perdure.space WHERE tenant = %s), (SELECT max(key) FROM perdure.cache WHERE tenant = %s),
    (SELECT max(key) FROM perdure.key_note WHERE tenant = %s),
    (SELECT CASE WHEN epoch > 0 THEN keys_from ELSE 0 END FROM perdure.tenant WHERE tenant = %s)

-- name: share_condemned
-- Who lets go of them waits, who makes others does not.
SELECT key FROM perdure.key_note WHERE tenant = %s AND key = ANY(%s) FOR KEY SHARE

-- name: absolve
DELETE FROM perdure.key_note WHERE tenant = %s AND key = ANY(%s)

-- name: cache_head
SELECT epoch, seq, erasures, digest, key, parts, size, made FROM perdure.cache WHERE tenant = %s AND space = %s AND name = %s

-- name: load_size
-- What a space's records take, and its snapshot, where there is one of what it holds.
SELECT s.bytes, c.size FROM perdure.space s LEFT JOIN perdure.cache c
    ON c.tenant = s.tenant AND c.space = s.space AND c.name = %s AND c.epoch = s.epoch AND c.erasures = s.erasures
WHERE s.tenant = %s AND s.space = %s

-- name: cache_parts
-- Of the snapshot that is there: another one may be on its way beside it.
SELECT p.part, p.data FROM perdure.cache c JOIN perdure.cache_part p
    ON p.tenant = c.tenant AND p.space = c.space AND p.name = c.name AND p.made = c.made
WHERE c.tenant = %s AND c.space = %s AND c.name = %s ORDER BY p.part

-- name: add_cache
INSERT INTO perdure.cache (tenant, space, name, made, epoch, seq, erasures, digest, key, parts, size)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: add_cache_part
INSERT INTO perdure.cache_part (tenant, space, name, made, part, data) VALUES (%s, %s, %s, %s, %s, %s)

-- name: drop_cache
DELETE FROM perdure.cache WHERE tenant = %s AND space = %s AND name = %s

-- name: drop_cache_parts
-- All but those of this one. What others are sending is not seen.
DELETE FROM perdure.cache_part WHERE tenant = %s AND space = %s AND name = %s AND made <> %s

-- name: drop_caches
DELETE FROM perdure.cache WHERE tenant = %s AND space = %s

-- name: drop_all_cache_parts
DELETE FROM perdure.cache_part WHERE tenant = %s AND space = %s

-- name: tenant_drops_spaces
DELETE FROM perdure.space WHERE tenant = %s

-- name: tenant_drops_records
DELETE FROM perdure.record WHERE tenant = %s AND epoch < %s

-- name: tenant_drops_lookups
DELETE FROM perdure.lookup WHERE tenant = %s AND epoch < %s

-- name: tenant_drops_all_records
DELETE FROM perdure.record WHERE tenant = %s

-- name: tenant_drops_all_lookups
DELETE FROM perdure.lookup WHERE tenant = %s

-- name: tenant_drops_caches
DELETE FROM perdure.cache WHERE tenant = %s

-- name: tenant_drops_cache_parts
DELETE FROM perdure.cache_part WHERE tenant = %s

-- name: tenant_drops_condemned
-- But for keys that are claimed by somebody who waits for whoever runs this, and will find that it was in vain.
DELETE FROM perdure.key_note d WHERE d.tenant = %s AND EXISTS (
    SELECT 1 FROM perdure.key_note c WHERE c.tenant = d.tenant AND c.key = d.key FOR UPDATE SKIP LOCKED)

-- name: tenant_drops_copy_notes
DELETE FROM perdure.copy_note WHERE tenant = %s

-- name: bury_tenant
UPDATE perdure.tenant SET buried = true WHERE tenant = %s

-- name: secret_is_gone
-- The keystore that was checked has taken the order, and may know the secret no more.
UPDATE perdure.tenant SET verifier = ''::bytea WHERE tenant = %s AND buried

-- name: buried_goes
DELETE FROM perdure.tenant WHERE tenant = %s AND buried

-- name: note_copy
INSERT INTO perdure.copy_note (tenant, number, at)
SELECT %s, coalesce(max(number), 0) + 1, %s FROM perdure.copy_note WHERE tenant = %s

-- name: copies
SELECT at FROM perdure.copy_note WHERE tenant = %s ORDER BY number

-- name: sizes
SELECT coalesce(sum(bytes), 0)::int8, coalesce(sum(erasures), 0)::int8, coalesce(sum(seq), 0)::int8
FROM perdure.space WHERE tenant = %s

-- name: cache_sizes
SELECT coalesce(sum(size), 0)::int8 FROM perdure.cache WHERE tenant = %s

-- name: stray_records
SELECT space, epoch, count(*) FROM perdure.record WHERE tenant = %s GROUP BY space, epoch ORDER BY space, epoch

-- name: stray_lookups
SELECT space, epoch, max(seq) FROM perdure.lookup WHERE tenant = %s GROUP BY space, epoch ORDER BY space, epoch

-- name: writable
SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'

-- name: schema_exists
-- Whether the tables are there, and whether they have a place for a home and this role may ask for that of this database.
-- Of a distributed one each node is another server, so it has none.
SELECT to_regclass('perdure.schema_version') IS NOT NULL, EXISTS (
    SELECT 1 FROM pg_attribute
    WHERE attrelid = to_regclass('perdure.schema_version') AND attname = 'home' AND NOT attisdropped
) AND NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')
    AND coalesce(has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()'), 'EXECUTE'), false)

-- name: schema_versions
SELECT version, NULL, NULL FROM perdure.schema_version ORDER BY version

-- name: schema_home
-- The versions, the home that is noted, and the present one. Refused to a role that may not ask for it, whatever it says.
SELECT v.version, v.home, c.system_identifier::text || '/' || d.oid::text
FROM perdure.schema_version v, pg_control_system() c, pg_database d
WHERE d.datname = current_database() ORDER BY v.version

-- name: lacking_tables
SELECT told FROM unnest(%s::text[]) AS told WHERE to_regclass('perdure.' || told) IS NULL ORDER BY told

-- name: open_tables
-- Those that the policy of the migrations does not hold any more, or that another policy opens beside it.
SELECT c.relname::text FROM pg_class c
WHERE c.relnamespace = to_regnamespace('perdure') AND c.relname = ANY(%s::text[]) AND NOT (
    c.relrowsecurity AND c.relforcerowsecurity AND EXISTS (
        SELECT 1 FROM pg_policy p
        WHERE p.polrelid = c.oid AND p.polname = 'own_rows' AND p.polpermissive AND p.polcmd = '*' AND 0 = ANY(p.polroles)
            AND position('app.tenant' IN pg_get_expr(p.polqual, p.polrelid)) > 0
    ) AND NOT EXISTS (
        SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname <> 'own_rows' AND p.polpermissive
    )
) ORDER BY 1

-- name: may_note_home
SELECT has_table_privilege('perdure.schema_version', 'UPDATE')

-- name: note_home
UPDATE perdure.schema_version SET home = %s WHERE version = 1

-- name: may_create
-- Whether this role may make the tables where there are none.
SELECT to_regnamespace('perdure') IS NULL AND has_database_privilege(current_database(), 'CREATE')

-- name: holds_tenants
-- A role sees the rows of one tenant at a time; how much the table takes it may always ask.
SELECT COALESCE(pg_relation_size(to_regclass('perdure.tenant')) > 0, false)

-- name: add_version
INSERT INTO perdure.schema_version (version) VALUES (%s)

-- name: granted_roles
-- Roles that stores connect as: they may write to the tables, and do not own them.
SELECT DISTINCT grantee::text FROM information_schema.role_table_grants
WHERE table_schema = 'perdure' AND table_name = 'tenant' AND privilege_type = 'UPDATE' AND grantee <> grantor
    AND grantee <> 'PUBLIC' ORDER BY 1

-- name: has_citus
SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')

-- name: is_distributed
SELECT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = %s::regclass)

-- name: distribute
SELECT create_distributed_table(%s::regclass, 'tenant', colocate_with => %s)

-- name: share_versions
SELECT create_reference_table('perdure.schema_version')
-- name: role_state
-- Whether row-level security holds a role not; nothing where there is no such role.
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s

-- name: may_use_schema
SELECT has_schema_privilege(%s::name, 'perdure', 'USAGE')
    AND has_table_privilege(%s::name, 'perdure.schema_version', 'SELECT')

-- name: may_use_table
SELECT has_table_privilege(%s::name, %s, 'SELECT') AND has_table_privilege(%s::name, %s, 'INSERT')
    AND has_table_privilege(%s::name, %s, 'UPDATE') AND has_table_privilege(%s::name, %s, 'DELETE')


-- name: present_role
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user

-- name: server_version
SELECT current_setting('server_version_num')::int8
