-- Moves a step on whose row is not terminal, behind the same fence as
-- step_insert.sql. A terminal state always takes; a started marker (1) or a
-- backoff (2) takes only if it is not behind what this epoch wrote already, so
-- that a marker that arrives late changes nothing.
UPDATE durable_step
SET status = ?1, attempt = ?2, epoch = ?3, started_at = coalesce(?4, started_at), ended_at = ?5, next_at = ?6,
    output = CAST(?7 AS BLOB), error = CAST(?8 AS BLOB), failures = CAST(?13 AS BLOB)
WHERE shard = ?9 AND run_id = ?10 AND name = ?11
  AND status < 3
  AND (?1 >= 3 OR epoch <> ?3 OR attempt < ?2 OR (attempt = ?2 AND status <= ?1))
  AND EXISTS (SELECT 1 FROM durable_run WHERE shard = ?9 AND id = ?10 AND epoch = ?3 AND status = 2 AND (control & ?12) = 0);
