-- Selects the versions of a workflow.
SELECT version, queue, first_seen_at, seen_at FROM durable_version WHERE workflow = ?;
