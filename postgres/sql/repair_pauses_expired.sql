-- Returns up to $2 runs whose pause for a repair ended by itself at $1 or before. The table has few rows.
SELECT p.run_id
FROM durable.repair_pause AS p
WHERE p.expires_at <= $1::timestamptz
ORDER BY p.run_id
LIMIT $2::integer;
