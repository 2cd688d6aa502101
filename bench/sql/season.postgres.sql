-- Fills the rest of one WAL file of the server.
SELECT pg_switch_wal() FROM pg_logical_emit_message(false, 'durable-bench', 'fill');
