-- Counts the unreceived signals of a run by name.
SELECT name, count(*)
FROM durable_signal
WHERE shard = ? AND run_id = ? AND step IS NULL
GROUP BY name
ORDER BY name;
