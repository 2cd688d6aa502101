-- Returns and locks those of the next $4 idle runs of the status $2 after the run $3 that are roots of the queue $1, have begun, and were
-- never counted by an admission. It also returns the last of the $4 runs, which the first column marks. The second column marks those to
-- be counted, whose other columns are NULL if another transaction has locked them.
SELECT idle.ordinal = $4::integer, idle.uncounted, idle.id, r.admission, r.started, r.status, r.control, r.wake_at, r.deadline_at, coalesce(r.is_root, false), coalesce(r.priority, 0::smallint),
       p.key, p.weight, p.priority, p.state, p.root, p.begun, p.turn, p.arrived_at, p.start_by
FROM (
    SELECT found.shard, found.id, found.uncounted, row_number() OVER (ORDER BY found.id) AS ordinal
    FROM (
        SELECT r.shard, r.id, r.queue = $1::text AND r.lane & 7 = 0 AND r.parent_id IS NULL AND r.started_at IS NOT NULL AND r.control & 8 = 0 AS uncounted
        FROM durable.run AS r
        WHERE r.wake_at IS NULL AND r.status IN (3, 4) AND r.status = $2::smallint AND r.id > $3::uuid
        ORDER BY r.id
        LIMIT $4::integer
    ) AS found
) AS idle
LEFT JOIN LATERAL (
    SELECT (r.lane & 7)::smallint AS admission, r.started_at IS NOT NULL AND r.control & 8 = 0 AS started, r.status, r.control, r.wake_at, r.deadline_at, r.parent_id IS NULL AS is_root, r.priority
    FROM durable.run AS r
    WHERE r.shard = idle.shard AND r.id = idle.id AND idle.uncounted
    FOR UPDATE SKIP LOCKED
) AS r ON true
LEFT JOIN LATERAL (
    SELECT p.* FROM durable.place AS p WHERE p.shard = idle.shard AND p.run_id = idle.id AND idle.uncounted OFFSET 0
) AS p ON true
WHERE idle.uncounted OR idle.ordinal = $4::integer
ORDER BY idle.ordinal;
