-- Removes the settings of an operator, so that those that code declares apply.
UPDATE durable.queue AS q
SET chosen = NULL, chosen_by = NULL, chosen_reason = NULL, chosen_at = NULL, last_change = $2::text
WHERE q.name = $1::text AND NOT q.deleted AND q.declared IS NOT NULL
RETURNING q.name;
