-- Returns the states of the runs whose steps ask for permits, and the permits that these steps have.
SELECT item.ordinal, run.status, run.epoch, run.control, run.wake_at,
       p.limit_name, p.key, p.status, p.epoch, p.attempt, p.units, p.priority, p.missed, p.arrived_at, p.granted_at, p.until_at
FROM unnest($1::smallint[], $2::uuid[], $3::text[]) WITH ORDINALITY AS item(shard, run_id, step, ordinal)
LEFT JOIN LATERAL (
    SELECT r.status, r.epoch, r.control, r.wake_at FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.run_id
    OFFSET 0
) AS run ON true
LEFT JOIN LATERAL (
    SELECT * FROM durable.permit AS s
    WHERE s.shard = item.shard AND s.run_id = item.run_id AND s.step = item.step
    OFFSET 0
) AS p ON true;
