-- Makes a waiting run (3) claimable at ?1 at the latest, so that it looks at its children even if the count of their ends is wrong.
UPDATE durable_run
SET wake_at = ?1
WHERE shard = ?2 AND id = ?3 AND status = 3 AND (wake_at IS NULL OR wake_at > ?1);
