-- How far the Maps (kind 7) of a run are: each one's row, and how many of its items have
-- their outcome. The items' names are the Map's, the separator of scopes (31), and the
-- item's; one more separator leads into an item.
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
