-- Inserts a signal for a run that has not ended (5 and above), unless a signal with this ID or this key exists.
INSERT INTO durable_signal (shard, run_id, id, name, key, payload, created_at, arrived_at)
SELECT shard, id,
       ?, -- id
       ?, -- name
       ?, -- key
       CAST(? AS BLOB), -- payload
       ?, -- created_at
       ? -- arrived_at
FROM durable_run
WHERE shard = ? AND id = ? AND status < 5
ON CONFLICT DO NOTHING;
