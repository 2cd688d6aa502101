-- Returns the progress of a run's Maps (kind 7): the row of each Map, and how many of its items have an
-- outcome. The name of an item is the name of the Map, the separator of scopes (31), and the item's own
-- name. A name with one more separator belongs to a call inside an item.
SELECT item.done, m.run_id, m.name, m.kind, m.status, m.attempt, m.epoch, m.output, m.error, m.started_at, m.ended_at, m.next_at, m.seq, m.failures
FROM durable.step AS m
CROSS JOIN LATERAL (
    SELECT count(*) AS done
    FROM durable.step AS s
    WHERE s.shard = $1::smallint AND s.run_id = $2::uuid
      AND s.name > m.name || chr(31) AND s.name < m.name || chr(32)
      AND s.status >= 3 AND strpos(substr(s.name, length(m.name) + 2), chr(31)) = 0
) AS item
WHERE m.shard = $1::smallint AND m.run_id = $2::uuid AND m.kind = 7
ORDER BY m.name;
