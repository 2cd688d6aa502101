-- Returns the runs above the ID $4 that are held for drift (control 16) and not paused (1, 2), of the workflows $2 in the queues
-- $3, or in all queues if $3 is empty, on which the version $1 has not diverged. The table of divergences leads, because it has
-- few rows.
SELECT r.id
FROM (SELECT DISTINCT d.shard, d.run_id FROM durable.divergence AS d WHERE d.continued_by IS NULL) AS d
JOIN durable.run AS r ON r.shard = d.shard AND r.id = d.run_id
WHERE r.status = 4 AND r.control & 19 = 16 AND r.id > $4::uuid
  AND r.workflow = ANY ($2::text[]) AND (cardinality($3::text[]) = 0 OR r.queue = ANY ($3::text[]))
  AND NOT EXISTS (
      SELECT FROM durable.divergence AS own
      WHERE own.shard = r.shard AND own.run_id = r.id AND own.version = $1::text
  )
ORDER BY r.id
LIMIT $5::integer;
