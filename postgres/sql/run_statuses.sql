-- Returns the statuses of runs and nothing else, because all callers that wait for a run's end poll it.
SELECT item.ordinal, run.status
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
CROSS JOIN LATERAL (
    SELECT r.status FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS run;
