-- Writes the counts of a key.
INSERT INTO durable_queue_key (queue, key, rate_used_until, check_at, turns, in_line_by_priority, executing, open, in_line, in_line_begun, in_line_children, behind)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, key) DO UPDATE
SET rate_used_until = excluded.rate_used_until, check_at = excluded.check_at, turns = excluded.turns, in_line_by_priority = excluded.in_line_by_priority, executing = excluded.executing, open = excluded.open,
    in_line = excluded.in_line, in_line_begun = excluded.in_line_begun, in_line_children = excluded.in_line_children, behind = excluded.behind;
