-- Selects a text that changes when a run or one of its first ?3 checkpoints changes. While the run is executed (2), wake_at is the end of a
-- lease, so its changes do not count.
SELECT run.status || ' ' || run.epoch || ' ' || run.control || ' ' || iif(run.status <> 2, coalesce(run.wake_at, ''), '') || ' ' || run.queue || ' ' || run.priority
       || ' ' || (SELECT count(*) || ' ' || coalesce(sum(part.attempt), 0) || ' ' || coalesce(sum(part.status), 0) || ' ' || coalesce(max(part.latest), 0)
                  FROM (SELECT s.attempt, s.status, max(s.started_at, coalesce(s.ended_at, 0), coalesce(s.next_at, 0)) AS latest
                        FROM durable_step AS s WHERE s.shard = ?1 AND s.run_id = ?2 ORDER BY s.name LIMIT ?3 + 0) AS part)
FROM durable_run AS run
WHERE run.shard = ?1 AND run.id = ?2;
