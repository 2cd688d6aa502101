-- Records fires. A fire that has started a run (1) stays as it is. There are at most 101 rows, in the order
-- of their times.
INSERT INTO durable.fire AS f (shard, schedule, at, fired_at, kind, outcome, run_id)
SELECT $1::smallint, $2::text, item.at, item.fired_at, item.kind, item.outcome, item.run_id
FROM unnest($3::timestamptz[], $4::timestamptz[], $5::smallint[], $6::smallint[], $7::uuid[]) AS item(at, fired_at, kind, outcome, run_id)
ON CONFLICT (shard, schedule, at) DO UPDATE
SET fired_at = excluded.fired_at, kind = excluded.kind, outcome = excluded.outcome, run_id = excluded.run_id
WHERE f.outcome <> 1
RETURNING f.at;
