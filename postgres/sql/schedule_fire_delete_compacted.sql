-- Deletes fires that have been folded.
DELETE FROM durable.fire AS f
USING unnest($3::timestamptz[]) AS item(at)
WHERE f.shard = $1::smallint AND f.schedule = $2::text AND f.at = item.at;
