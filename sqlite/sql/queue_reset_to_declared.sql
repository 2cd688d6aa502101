-- Removes the settings of an operator, so that those that code declares apply.
UPDATE durable_queue
SET chosen = NULL, chosen_by = NULL, chosen_reason = NULL, chosen_at = NULL, last_change = ?2
WHERE name = ?1 AND NOT deleted AND declared IS NOT NULL;
