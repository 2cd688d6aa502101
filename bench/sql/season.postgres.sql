-- Fills one file of the server's log.
SELECT pg_switch_wal() FROM pg_logical_emit_message(false, 'durable-bench', 'fill');
