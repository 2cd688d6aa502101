-- Deletes fires that have been folded.
DELETE FROM durable.fire AS f
WHERE f.shard = $1::smallint AND f.schedule = $2::text AND f.at = ANY ($3::timestamptz[]);
