-- Returns the divergences of a run.
SELECT d.version, d.at, d.call, d.detail, coalesce(d.continued_by, '') AS continued_by
FROM durable.divergence AS d
WHERE d.shard = $1::smallint AND d.run_id = $2::uuid
ORDER BY d.version;
