-- Reads what stood in the way of signals: the run, the signal itself if an earlier try
-- wrote it, and the one that used its key first. Any of them may be missing.
SELECT item.ordinal, run.status, run.epoch, run.control, own.id IS NOT NULL,
       used.id, used.name, used.payload, used.created_at
FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::text[]) WITH ORDINALITY AS item(shard, run_id, id, key, ordinal)
LEFT JOIN LATERAL (
    SELECT r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.run_id
    OFFSET 0
) AS run ON true
LEFT JOIN LATERAL (
    SELECT s.id FROM durable.signal AS s
    WHERE s.shard = item.shard AND s.run_id = item.run_id AND s.id = item.id
    OFFSET 0
) AS own ON true
LEFT JOIN LATERAL (
    SELECT s.id, s.name, s.payload, s.created_at FROM durable.signal AS s
    WHERE s.shard = item.shard AND s.run_id = item.run_id AND s.key = item.key
    OFFSET 0
) AS used ON true;
