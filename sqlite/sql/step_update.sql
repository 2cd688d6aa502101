-- Updates a step whose row is not terminal, with the fence of step_insert.sql. A terminal status always replaces the row. A
-- started marker (1) or a backoff (2) replaces it only if this epoch has not written a later one, so that a late marker
-- changes nothing.
UPDATE durable_step
SET status = ?1, attempt = ?2, epoch = ?3, started_at = coalesce(?4, started_at), ended_at = ?5, next_at = ?6,
    output = CAST(?7 AS BLOB), error = CAST(?8 AS BLOB), failures = CAST(?13 AS BLOB)
WHERE shard = ?9 AND run_id = ?10 AND name = ?11
  AND status < 3
  AND (?1 >= 3 OR epoch <> ?3 OR attempt < ?2 OR (attempt = ?2 AND status <= ?1))
  AND EXISTS (SELECT 1 FROM durable_run WHERE shard = ?9 AND id = ?10 AND epoch = ?3 AND status = 2 AND (control & ?12) = 0);
