-- Sets the settings of a queue, whatever code declares.
INSERT INTO durable_queue (name, chosen, chosen_by, chosen_reason, chosen_at, now_at, last_change)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)
ON CONFLICT (name) DO UPDATE
SET chosen = excluded.chosen, chosen_by = excluded.chosen_by, chosen_reason = excluded.chosen_reason, chosen_at = excluded.chosen_at,
    last_change = excluded.last_change, deleted = 0;
