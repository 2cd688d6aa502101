-- Reads at most $5 runs of a shard, $1, in the order of their IDs, after $2 and before $3. It returns those that ended (5 and
-- above) before $4 and have no parent, whose parent was deleted, or that are detached children of a superseded generation, and the last
-- run that it reads.
SELECT page.id, page.workflow, page.status, page.epoch, page.ended_at, page.number, page.ended
FROM (
    SELECT r.id, r.parent_id, r.workflow, r.status, r.epoch, r.ended_at, row_number() OVER (ORDER BY r.id) AS number,
           r.status >= 5 AND r.ended_at < $4::timestamptz AND (r.parent_id IS NULL OR NOT EXISTS (
               SELECT FROM durable.run AS parent WHERE parent.shard = $1::smallint AND parent.id = r.parent_id OFFSET 0
           ) AND (r.detached OR NOT EXISTS (
               SELECT FROM durable.generation AS g WHERE g.archive_id = r.parent_id AND g.shard = $1::smallint OFFSET 0
           ))) AS ended
    FROM (
        SELECT own.id, own.parent_id, own.workflow, own.status, own.epoch, own.ended_at, own.detached FROM durable.run AS own
        WHERE own.shard = $1::smallint AND own.id > $2::uuid AND own.id < $3::uuid
        ORDER BY own.id
        LIMIT $5::integer
    ) AS r
) AS page
WHERE page.ended OR page.number = $5::integer
ORDER BY page.id;
