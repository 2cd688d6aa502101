-- Reads at most $5 superseded generations of a shard, $1, after the generation $3 of the run $2. It returns those that were
-- superseded before $4 and are not the newest superseded one of their run, and the last one that it reads.
SELECT page.run_id, page.number, page.archive_id, page.workflow, page.position, page.old
FROM (
    SELECT g.run_id, g.number, g.archive_id, g.workflow, row_number() OVER (ORDER BY g.run_id, g.number) AS position,
           g.at < $4::timestamptz AND EXISTS (
               SELECT FROM durable.generation AS newer
               WHERE newer.shard = $1::smallint AND newer.run_id = g.run_id AND newer.number > g.number
               OFFSET 0
           ) AS old
    FROM (
        SELECT own.run_id, own.number, own.archive_id, own.workflow, own.at FROM durable.generation AS own
        WHERE own.shard = $1::smallint AND (own.run_id, own.number) > ($2::uuid, $3::integer)
        ORDER BY own.run_id, own.number
        LIMIT $5::integer
    ) AS g
) AS page
WHERE page.old OR page.position = $5::integer
ORDER BY page.run_id, page.number;
