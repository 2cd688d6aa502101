-- Makes the commit of this transaction wait for the disk and for synchronous standbys, although the
-- transaction only reads. The rows that it reads were committed before, but that commit's wait for the
-- standbys may have been cancelled. A commit that waits also waits for everything before it in the WAL. A
-- transactional message (true) needs no privilege. A transaction ID alone (pg_current_xact_id) does not
-- make a commit wait.
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.pg_logical_emit_message(true, 'durable'::pg_catalog.text, ''::pg_catalog.text);
