-- Returns the checkpoints of one run from the name $3 on, in the order of the primary key, up to about $4
-- bytes, but at least one. The checkpoint after them, if there is one, is marked as the first of the
-- rest, and comes without payloads. octet_length returns the size of a payload without reading it.
SELECT sized.rest, sized.run_id, sized.name, sized.kind, sized.status, sized.attempt, sized.epoch,
       CASE WHEN NOT sized.rest THEN sized.output END, CASE WHEN NOT sized.rest THEN sized.error END,
       sized.started_at, sized.ended_at, sized.next_at, sized.seq, CASE WHEN NOT sized.rest THEN sized.failures END
FROM (
    SELECT measured.*, measured.place > 1 AND measured.reached > $4::bigint AS rest
    FROM (
        SELECT own.*, row_number() OVER named AS place, sum(own.size) OVER named AS reached
        FROM (
            SELECT s.*, 100 + octet_length(s.name) + coalesce(octet_length(s.output), 0) + coalesce(octet_length(s.error), 0)
                   + coalesce(octet_length(s.failures), 0) AS size
            FROM durable.step AS s
            WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.name >= $3::text
            ORDER BY s.name
            LIMIT 2 + $4::bigint / 100
        ) AS own
        WINDOW named AS (ORDER BY own.name ROWS UNBOUNDED PRECEDING)
    ) AS measured
    WHERE measured.reached - measured.size <= $4::bigint OR measured.place = 2
) AS sized
ORDER BY sized.name;
