-- Returns for each run a text that changes when the run or one of its first $3 checkpoints changes. While the run is executed, wake_at is the
-- end of a lease, so its changes do not count.
SELECT item.ordinal, concat_ws(' ', run.status, run.epoch, run.control, run.wake_at, run.queue, run.priority, steps.number, steps.attempts, steps.states, steps.latest)
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, id, ordinal)
CROSS JOIN LATERAL (
    SELECT r.status, r.epoch, r.control, CASE WHEN r.status <> 2 THEN r.wake_at END AS wake_at, r.queue, r.priority
    FROM durable.run AS r
    WHERE r.shard = item.shard AND r.id = item.id
    OFFSET 0
) AS run
CROSS JOIN LATERAL (
    SELECT count(*) AS number, sum(part.attempt) AS attempts, sum(part.status) AS states, max(greatest(part.started_at, part.ended_at, part.next_at)) AS latest
    FROM (
        SELECT s.attempt, s.status, s.started_at, s.ended_at, s.next_at
        FROM durable.step AS s
        WHERE s.shard = item.shard AND s.run_id = item.id
        ORDER BY s.name
        LIMIT $3::integer
    ) AS part
) AS steps;
