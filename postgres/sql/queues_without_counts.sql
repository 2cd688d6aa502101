-- Returns the rows of all queues, without counts. A queue without a row that has runs which wait for an admission is
-- returned as deleted: those runs were started by a transaction that knew the queue's row, and committed after the
-- row was gone. The index run_in_queue has one entry for each run that waits; each queue in it costs one probe.
WITH RECURSIVE arrived AS (
    (
        SELECT r.queue
        FROM durable.run AS r
        WHERE r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 2 AND r.wake_at IS NOT NULL
        ORDER BY r.queue
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT r.queue
        FROM durable.run AS r
        WHERE r.lane & 3 > 0 AND (CASE WHEN r.status >= 5 OR r.lane & 3 > 1 AND r.status IN (3, 4) THEN 1 WHEN r.lane & 1 = 1 THEN 2 WHEN r.lane & 7 = 2 AND r.status = 1 THEN 3 END) = 2 AND r.wake_at IS NOT NULL AND r.queue > arrived.queue
        ORDER BY r.queue
        LIMIT 1
    )
    FROM arrived
    WHERE arrived.queue IS NOT NULL
)
SELECT q.name, coalesce(q.chosen, q.declared), q.paused_at, q.deleted
FROM durable.queue AS q
UNION ALL
SELECT arrived.queue, NULL, NULL, true
FROM arrived
WHERE arrived.queue IS NOT NULL AND NOT EXISTS (SELECT FROM durable.queue AS q WHERE q.name = arrived.queue)
ORDER BY 1;
