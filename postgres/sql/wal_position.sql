-- Returns the database's position in its history: the timeline, which a promotion or a restore to an
-- earlier time changes, and the position in the WAL. Both are NULL on a standby.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) END,
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), '0/0'::pg_catalog.pg_lsn)::pg_catalog.int8 END;
