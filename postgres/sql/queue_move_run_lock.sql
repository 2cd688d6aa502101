-- Locks a run that is given another queue or another priority. The next statement reads it, because its place may have
-- changed while this one waited.
SELECT
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid
FOR NO KEY UPDATE;
