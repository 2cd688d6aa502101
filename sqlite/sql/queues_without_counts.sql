-- Selects the rows of all queues, without counts. A queue without a row that has runs which wait for an admission is
-- returned as deleted: those runs were started by a transaction that knew the queue's row, and committed after the
-- row was gone. The index durable_run_arrived has one entry for each run that waits; each queue in it costs one probe.
WITH RECURSIVE arrived AS (
    SELECT (
        SELECT r.queue
        FROM durable_run AS r
        WHERE r.lane & 1 = 1 AND r.wake_at IS NOT NULL
        ORDER BY r.queue
        LIMIT 1
    ) AS queue
    UNION ALL
    SELECT (
        SELECT r.queue
        FROM durable_run AS r
        WHERE r.lane & 1 = 1 AND r.wake_at IS NOT NULL AND r.queue > arrived.queue
        ORDER BY r.queue
        LIMIT 1
    )
    FROM arrived
    WHERE arrived.queue IS NOT NULL
)
SELECT q.name, coalesce(q.chosen, q.declared), q.paused_at, q.deleted
FROM durable_queue AS q
UNION ALL
SELECT arrived.queue, NULL, NULL, 1
FROM arrived
WHERE arrived.queue IS NOT NULL AND NOT EXISTS (SELECT 1 FROM durable_queue AS q WHERE q.name = arrived.queue)
ORDER BY 1;
