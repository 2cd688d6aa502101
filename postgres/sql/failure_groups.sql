-- Groups failed and expired runs by workflow, step and type of error: up to $1 groups of the workflows from $13 to $14, in
-- their order. Of each group it examines the $2 newest runs, and counts those that the filter selects. It needs one probe of
-- the index run_failure for each group, and one for each run that it examines. If $11 is not empty, the runs have a tag of
-- this key and, unless $12 is empty, this value. If $19 is not empty, it reads only the group of the workflow $19, the step $20
-- and the type $21.
WITH RECURSIVE failure AS (
    (
        SELECT r.workflow, r.failed_step, r.failed_type
        FROM durable.run AS r
        WHERE r.failed_step IS NOT NULL AND r.workflow >= $13::text AND r.workflow <= $14::text
        ORDER BY r.workflow, r.failed_step, r.failed_type
        LIMIT 1
    )
    UNION ALL
    SELECT ahead.workflow, ahead.failed_step, ahead.failed_type
    FROM failure
    CROSS JOIN LATERAL (
        SELECT r.workflow, r.failed_step, r.failed_type
        FROM durable.run AS r
        WHERE r.failed_step IS NOT NULL AND r.workflow <= $14::text
          AND (r.workflow, r.failed_step, r.failed_type) > (failure.workflow, failure.failed_step, failure.failed_type)
        ORDER BY r.workflow, r.failed_step, r.failed_type
        LIMIT 1
    ) AS ahead
)
SELECT matched.workflow, matched.failed_step, matched.failed_type, matched.runs, matched.more, matched.first_at, matched.last_at,
       newest.id, newest.parent_id, newest.name, newest.status, newest.error
FROM (
    SELECT failure.workflow, failure.failed_step, failure.failed_type, found.runs, found.more, found.first_at, found.last_at, found.newest
    FROM failure
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE examined.matches) AS runs, count(*) >= $2::integer AS more,
               min(examined.ended_at) FILTER (WHERE examined.matches) AS first_at,
               max(examined.ended_at) FILTER (WHERE examined.matches) AS last_at,
               (array_agg(examined.id ORDER BY examined.ended_at DESC, examined.id DESC) FILTER (WHERE examined.matches))[1] AS newest
        FROM (
            SELECT r.id, r.ended_at,
                   ($3::text = '' OR r.workflow = $3::text)
                   AND ($4::text = '' OR r.queue = $4::text)
                   AND (cardinality($5::smallint[]) = 0 OR r.status = ANY ($5::smallint[]))
                   AND ($6::text = '' OR starts_with(r.name, $6::text))
                   AND (cardinality($10::smallint[]) = 0 OR r.priority = ANY ($10::smallint[]))
                   AND ($7::timestamptz IS NULL OR r.created_at > $7::timestamptz)
                   AND ($8::timestamptz IS NULL OR r.created_at < $8::timestamptz)
                   AND (NOT $9::boolean OR r.parent_id IS NULL)
                   AND ($15::text = '' OR r.version = $15::text)
                   AND ($16::uuid IS NULL OR r.owner = $16::uuid)
                   AND ($17::timestamptz IS NULL OR r.ended_at > $17::timestamptz)
                   AND ($18::timestamptz IS NULL OR r.ended_at < $18::timestamptz)
                   AND ($11::text = '' OR EXISTS (
                       SELECT FROM durable.tag AS g
                       WHERE g.shard = r.shard AND g.run_id = r.id AND g.key = $11::text AND ($12::text = '' OR g.value = $12::text)
                   )) AS matches
            FROM durable.run AS r
            WHERE r.failed_step IS NOT NULL
              AND r.workflow = failure.workflow AND r.failed_step = failure.failed_step AND r.failed_type = failure.failed_type
            ORDER BY r.id DESC
            LIMIT $2::integer
        ) AS examined
    ) AS found
    WHERE found.runs > 0
      AND ($19::text = '' OR failure.workflow = $19::text AND failure.failed_step = $20::text AND failure.failed_type = $21::text)
    LIMIT $1::integer
) AS matched
CROSS JOIN LATERAL (
    SELECT r.id, r.parent_id, r.name, r.status, r.error
    FROM durable.run AS r
    WHERE r.wake_at IS NULL AND r.status IN (6, 9) AND r.id = matched.newest
) AS newest
ORDER BY matched.workflow, matched.failed_step, matched.failed_type;
