-- Sets the settings of a queue, whatever code declares.
INSERT INTO durable.queue AS q (name, chosen, chosen_by, chosen_reason, chosen_at, now_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::timestamptz, $5::timestamptz)
ON CONFLICT (name) DO UPDATE
SET chosen = excluded.chosen, chosen_by = excluded.chosen_by, chosen_reason = excluded.chosen_reason, chosen_at = excluded.chosen_at,
    deleted = false
RETURNING q.name;
