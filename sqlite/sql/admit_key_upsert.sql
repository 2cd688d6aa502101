-- Writes the counts of a key.
INSERT INTO durable_queue_key (queue, key, paid_at, look_at, turns, levels, executing, open, lined, lined_begun, lined_children, behind)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, key) DO UPDATE
SET paid_at = excluded.paid_at, look_at = excluded.look_at, turns = excluded.turns, levels = excluded.levels, executing = excluded.executing, open = excluded.open,
    lined = excluded.lined, lined_begun = excluded.lined_begun, lined_children = excluded.lined_children, behind = excluded.behind;
