-- Makes the commit of this transaction one that waits, for the disk and for synchronous standbys,
-- although the transaction has only read. What it has read was visible, so it was committed
-- before; but its own wait for the standbys may have been cancelled. A commit that waits has
-- also waited for everything before it in the log. A transactional message (true) needs no
-- privilege; a transaction number alone (pg_current_xact_id) is not waited for.
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.pg_logical_emit_message(true, 'durable'::pg_catalog.text, ''::pg_catalog.text);
