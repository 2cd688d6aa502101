-- Marks a queue as deleted, with all that was set and declared. The admission that finds nothing left in it deletes the
-- row.
UPDATE durable_queue
SET deleted = 1, applied = NULL, paused_at = NULL, paused_by = NULL, pause_reason = NULL,
    chosen = NULL, chosen_by = NULL, chosen_reason = NULL, chosen_at = NULL,
    declared = NULL, declared_version = NULL, declared_at = NULL, older_versions = '[]',
    last_change = ?2
WHERE name = ?1 AND NOT deleted;
