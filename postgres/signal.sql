-- Keeps signals for runs that have not ended (5 and above), each once by its ID and by
-- the caller's key. lock.sql has locked the runs before. The count says whether all were
-- new; if not, signal_state.sql reads what is there.
INSERT INTO durable.signal (shard, run_id, id, name, key, payload, created_at)
SELECT item.shard, item.run_id, item.id, item.name, item.key, item.payload, item.created_at
FROM unnest(
    $1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::timestamptz[]
) AS item(shard, run_id, id, name, key, payload, created_at)
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.run_id AND r.status < 5
    OFFSET 0
) AS live
ON CONFLICT DO NOTHING;
