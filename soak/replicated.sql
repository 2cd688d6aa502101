-- Commits a transaction that waits for the synchronous standby, and so for everything that was committed before it.
SELECT pg_logical_emit_message(true, 'soak', '')
