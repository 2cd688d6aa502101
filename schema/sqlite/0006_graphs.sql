-- Graphs for users of sqlite3: the nodes and edges of runs, as far as rows show them.

-- The newest shape that each run of a graph has recorded. Codecs do not encode shapes. A query by column run, which is the stored form of run_id,
-- uses the primary keys of the tables in this view and in those below. Their plans are checked by a test.
CREATE VIEW durable_shapes AS
SELECT hex(s.run_id) AS run_id, CAST(substr(s.name, 7) AS INTEGER) AS revision,
       iif(substr(s.output, 1, 1) = x'c0', json_object('encoded', length(s.output)), CAST(s.output AS TEXT)) AS shape, s.run_id AS run, s.shard
FROM durable_step AS s
WHERE s.kind = 17 AND s.status = 3 AND s.name GLOB 'shape' || char(31) || '[1-9]*' AND NOT EXISTS (
    SELECT 1
    FROM durable_step AS later
    WHERE later.run_id = s.run_id AND later.name > 'shape' || char(31) AND later.name < 'shape ' AND later.kind = 17 AND later.status = 3
      AND CAST(substr(later.name, 7) AS INTEGER) > CAST(substr(s.name, 7) AS INTEGER));

-- An edge leads from a node to one that refers to it. choice is the number of the choice of the latter, which needs k of its nodes.
CREATE VIEW durable_edges AS
SELECT g.run_id, need.value AS from_node, n.value ->> 'name' AS to_node, NULL AS choice, NULL AS k, NULL AS of, 0 AS after,
       EXISTS (SELECT 1 FROM json_each(n.value, '$.if') AS i WHERE i.value = need.value) AS condition, need.value IS n.value ->> 'over' AS over,
       n.key + 1 AS to_number, g.revision, g.shard, g.run
FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n, json_each(n.value, '$.needs') AS need
UNION ALL
SELECT g.run_id, member.value, n.value ->> 'name', c.key + 1, c.value ->> 'k', json_array_length(c.value, '$.of'), 0, 0, 0, n.key + 1, g.revision, g.shard, g.run
FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n, json_each(n.value, '$.choices') AS c, json_each(c.value, '$.of') AS member
UNION ALL
SELECT g.run_id, need.value, n.value ->> 'name', NULL, NULL, NULL, 1, 0, 0, n.key + 1, g.revision, g.shard, g.run
FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n, json_each(n.value, '$.after') AS need;

-- The state is NULL for a node of which nothing is recorded: it waits, is ready, or is skipped because of another one; which
-- follows from the states of the others, and Engine.Graph tells it; and for a list whose length a codec hides. ORDER BY run_id, number is the
-- order of declaration.
--
-- The rows of a node are those between scope and past, in the order of the primary key: char(31) ends a scope, and the space comes next. They
-- are joined as rows of table durable_step, because SQLite would compute all rows of the view durable_steps for each query.
CREATE VIEW durable_nodes AS
SELECT n.run_id, n.number, n.name, n.kind, n.workflow, n.over,
       CASE WHEN n.skips > 0 THEN 'skipped'
            WHEN n.fails > 0 THEN 'failed'
            WHEN n.over IS NULL AND n.result IN ('completed', 'failed', 'cancelled') THEN n.result
            WHEN n.running = 0 AND n.failed > 0 AND n.completed + n.failed >= n.items THEN 'failed'
            WHEN n.running = 0 AND n.completed > 0 AND n.completed >= n.items THEN 'completed'
            WHEN n.held > 0 AND (NOT n.delayed OR n.delay = 'completed') THEN 'completed'
            WHEN n.result = 'cancelled' THEN 'cancelled'
            WHEN EXISTS (
                SELECT 1
                FROM durable_step AS c, json_each(iif(substr(c.output, 1, 1) = x'c0', '{}', CAST(c.output AS TEXT)), '$.ended') AS ended
                WHERE c.run_id = n.run AND c.kind = 4 AND c.status = 3 AND ended.value = replace(replace(n.name, '%', '%25'), '/', '%2F')) THEN 'cancelled'
            WHEN n.cancelled > 0 THEN 'cancelled'
            WHEN n.running > 0 THEN 'running'
            WHEN n.failed > 0 THEN 'failed'
            WHEN n.over IS NOT NULL AND n.items IS NULL THEN NULL
            WHEN n.run_has_ended AND (n.completed > 0 OR n.result IS NOT NULL OR n.delay = 'completed') THEN 'cancelled'
            WHEN n.completed > 0 OR n.result IS NOT NULL THEN 'running'
            WHEN n.delay = 'started' THEN 'delayed'
            WHEN n.delay = 'completed' THEN 'ready'
            ELSE n.delay END AS state,
       n.attempts, n.items, iif(n.over IS NOT NULL, n.completed, NULL) AS items_completed, iif(n.over IS NOT NULL, n.failed, NULL) AS items_failed,
       iif(n.over IS NOT NULL, n.running, NULL) AS items_running,
       strftime('%Y-%m-%dT%H:%M:%fZ', n.started_at / 1e6, 'unixepoch') AS started_at, strftime('%Y-%m-%dT%H:%M:%fZ', n.ended_at / 1e6, 'unixepoch') AS ended_at,
       n.revision, n.shard, n.run
FROM (
    SELECT s.run_id, s.run, s.shard, s.revision, s.number, s.node AS name, s.node_kind AS kind, s.workflow, s.over, s.delayed, s.run_has_ended,
           max(s.state) FILTER (WHERE s.name = s.call) AS result,
           max(s.state) FILTER (WHERE s.name = s.scope || 'delay') AS delay,
           count(*) FILTER (WHERE s.name = s.scope || 'skip') AS skips,
           count(*) FILTER (WHERE s.name = s.scope || 'held' AND s.state = 'completed') AS held,
           count(*) FILTER (WHERE s.kind = 4 AND substr(s.name, length(s.scope) + 1, 11) = 'fails with ' OR s.name = s.scope || 'failure' AND s.state = 'failed') AS fails,
           count(*) FILTER (WHERE s.is_item AND s.state = 'completed') AS completed,
           count(*) FILTER (WHERE s.is_item AND s.state = 'failed') AS failed,
           count(*) FILTER (WHERE s.is_item AND s.state IN ('started', 'backoff')) AS running,
           count(*) FILTER (WHERE s.is_item AND s.state = 'cancelled') AS cancelled,
           sum(s.attempt) FILTER (WHERE s.name = s.call OR s.is_item) AS attempts,
           min(s.started_at) AS started_at,
           max(s.end) FILTER (WHERE s.name = s.call OR s.is_item) AS ended_at,
           (SELECT coalesce(
                       max(CASE WHEN substr(i.output, 1, 1) = x'c0' THEN NULL WHEN json_type(CAST(i.output AS TEXT)) = 'array' THEN json_array_length(CAST(i.output AS TEXT))
                                WHEN json_type(CAST(i.output AS TEXT)) = 'text' THEN length(rtrim(CAST(i.output AS TEXT) ->> '$', '=')) * 3 / 4 END) -- a list of bytes, in base64
                           FILTER (WHERE i.name IN (s.list || 'step', s.list || 'child', s.list || 'receive')),
                       nullif(count(*) FILTER (WHERE substr(i.name, length(s.list) + 1, 5) = 'each' || char(31) OR substr(i.name, length(s.list) + 1, 9) = 'children' || char(31)), 0))
            FROM durable_step AS i
            WHERE i.run_id = s.run AND i.name > s.list AND i.name < s.over || ' ' AND i.status = 3) AS items
    FROM (
        SELECT n.*, step.name, step.kind, step.attempt, step.started_at, substr(step.name, 1, length(n.call) + 1) = n.call || char(31) AS is_item,
               CASE WHEN run.ended_at IS NOT NULL AND (step.status < 3 OR step.kind = 3 AND run.ended_at < step.next_at) THEN 'cancelled'
                    WHEN step.kind = 3 AND step.next_at > (julianday('now') - 2440587.5) * 86400e6 THEN 'started'
                    ELSE CASE step.status WHEN 1 THEN 'started' WHEN 2 THEN 'backoff' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' END END AS state,
               iif(step.status < 3 AND run.ended_at IS NOT NULL, run.ended_at, step.ended_at) AS end, run.ended_at IS NOT NULL AS run_has_ended
        FROM (
            SELECT g.run_id, g.run, g.shard, g.revision, n.key + 1 AS number, n.value ->> 'name' AS node, n.value ->> 'kind' AS node_kind,
                   n.value ->> 'workflow' AS workflow, n.value ->> 'over' AS over, n.value ->> 'delayed' IS NOT NULL AS delayed, n.value ->> 'name' || char(31) AS scope, n.value ->> 'over' || char(31) AS list,
                   n.value ->> 'name' || char(31) || iif(n.value ->> 'kind' = 'each child', 'children', n.value ->> 'kind') AS call
            FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n
        ) AS n
        LEFT JOIN durable_step AS step ON step.run_id = n.run AND step.name > n.scope AND step.name < n.node || ' '
        LEFT JOIN durable_run AS run ON run.id = n.run
    ) AS s
    GROUP BY s.run_id, s.run, s.number
) AS n;
