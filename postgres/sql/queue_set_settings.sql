-- Sets the settings of a queue, whatever code declares.
INSERT INTO durable.queue AS q (name, chosen, chosen_by, chosen_reason, chosen_at, now_at, last_change)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::timestamptz, $5::timestamptz, $6::text)
ON CONFLICT (name) DO UPDATE
SET chosen = excluded.chosen, chosen_by = excluded.chosen_by, chosen_reason = excluded.chosen_reason, chosen_at = excluded.chosen_at,
    last_change = excluded.last_change, deleted = false
RETURNING q.name;
