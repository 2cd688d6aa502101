-- Graphs for users of sqlite3: the nodes and edges of runs, as far as rows show them.

-- The newest shape that each run of a graph has recorded. Codecs do not encode shapes.
CREATE VIEW durable_shapes AS
SELECT hex(run_id) AS run_id, max(CAST(substr(name, 7) AS INTEGER)) AS revision,
       iif(substr(output, 1, 1) = x'c0', json_object('encoded', length(output)), CAST(output AS TEXT)) AS shape, run_id AS run, shard
FROM durable_step
WHERE kind = 17 AND status = 3 AND name GLOB 'shape' || char(31) || '[1-9]*'
GROUP BY run_id; -- the other columns are those of the row with the maximum

-- An edge leads from a node to one that refers to it. choice is the number of the choice of the latter, which needs k of its nodes.
CREATE VIEW durable_edges AS
SELECT g.run_id, need.value AS from_node, n.value ->> 'name' AS to_node, NULL AS choice, NULL AS k, NULL AS of, 0 AS after,
       EXISTS (SELECT 1 FROM json_each(n.value, '$.if') AS i WHERE i.value = need.value) AS condition, need.value IS n.value ->> 'over' AS over,
       n.key + 1 AS to_number, g.revision, g.shard
FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n, json_each(n.value, '$.needs') AS need
UNION ALL
SELECT g.run_id, member.value, n.value ->> 'name', c.key + 1, c.value ->> 'k', json_array_length(c.value, '$.of'), 0, 0, 0, n.key + 1, g.revision, g.shard
FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n, json_each(n.value, '$.choices') AS c, json_each(c.value, '$.of') AS member
UNION ALL
SELECT g.run_id, need.value, n.value ->> 'name', NULL, NULL, NULL, 1, 0, 0, n.key + 1, g.revision, g.shard
FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n, json_each(n.value, '$.after') AS need;

-- The state is NULL for a node of which nothing is recorded: it waits, is ready, has no items, or is skipped because of another one; which
-- follows from the states of the others, and Engine.Graph tells it; and for a list whose length a codec hides. ORDER BY run_id, number is the
-- order of declaration.
CREATE VIEW durable_nodes AS
WITH node AS (
    SELECT g.run_id, g.run, g.shard, g.revision, n.key + 1 AS number, n.value ->> 'name' AS name, n.value ->> 'kind' AS kind,
           n.value ->> 'workflow' AS workflow, n.value ->> 'over' AS over,
           replace(replace(n.value ->> 'name', '%', '%25'), '/', '%2F') || '/' AS scope,
           iif(n.value ->> 'kind' = 'each child', 'children', n.value ->> 'kind') AS call,
           replace(replace(n.value ->> 'over', '%', '%25'), '/', '%2F') || '/' AS list
    FROM durable_shapes AS g, json_each(g.shape, '$.nodes') AS n
), did AS (
    SELECT n.run_id, n.number,
           max(s.status) FILTER (WHERE s.name = n.scope || n.call) AS call,
           max(s.status) FILTER (WHERE s.name = n.scope || 'delay') AS delay,
           count(*) FILTER (WHERE s.name = n.scope || 'skip') AS skips,
           count(*) FILTER (WHERE s.kind = 'choice' AND substr(s.name, length(n.scope) + 1, 11) = 'fails with ' OR s.name = n.scope || 'input' AND s.status = 'failed') AS fails,
           count(*) FILTER (WHERE substr(s.name, 1, length(n.scope || n.call) + 1) = n.scope || n.call || '/' AND s.status = 'completed') AS completed,
           count(*) FILTER (WHERE substr(s.name, 1, length(n.scope || n.call) + 1) = n.scope || n.call || '/' AND s.status = 'failed') AS failed,
           count(*) FILTER (WHERE substr(s.name, 1, length(n.scope || n.call) + 1) = n.scope || n.call || '/' AND s.status IN ('started', 'backoff')) AS running,
           sum(s.attempt) FILTER (WHERE substr(s.name, 1, length(n.scope || n.call)) = n.scope || n.call) AS attempts,
           min(s.started_at) AS started_at, max(s.ended_at) FILTER (WHERE substr(s.name, 1, length(n.scope || n.call)) = n.scope || n.call) AS ended_at
    FROM node AS n
    JOIN durable_steps AS s ON s.run_id = n.run_id AND substr(s.name, 1, length(n.scope)) = n.scope
    GROUP BY n.run_id, n.number
), items AS (
    SELECT n.run_id, n.number, coalesce(
               max(iif(json_type(s.output) = 'array', json_array_length(s.output), NULL)) FILTER (WHERE s.name IN (n.list || 'step', n.list || 'child', n.list || 'receive')),
               nullif(count(*) FILTER (WHERE substr(s.name, 1, length(n.list) + 5) = n.list || 'each/' OR substr(s.name, 1, length(n.list) + 9) = n.list || 'children/'), 0)) AS items
    FROM node AS n
    JOIN durable_steps AS s ON s.run_id = n.run_id AND substr(s.name, 1, length(n.list)) = n.list AND s.status = 'completed'
    GROUP BY n.run_id, n.number
)
SELECT n.run_id, n.number, n.name, n.kind, n.workflow, n.over,
       CASE WHEN r.skips > 0 THEN 'skipped'
            WHEN r.fails > 0 THEN 'failed'
            WHEN n.over IS NULL AND r.call IN ('completed', 'failed', 'cancelled') THEN r.call
            WHEN r.running = 0 AND r.failed > 0 THEN 'failed'
            WHEN r.running = 0 AND r.completed > 0 AND r.completed = l.items THEN 'completed'
            WHEN r.call = 'cancelled' THEN 'cancelled'
            WHEN EXISTS (
                SELECT 1 FROM durable_steps AS c, json_each(c.output, '$.ended') AS ended
                WHERE c.run_id = n.run_id AND c.kind = 'choice' AND c.status = 'completed' AND ended.value || '/' = n.scope) THEN 'cancelled'
            WHEN r.running > 0 THEN 'running'
            WHEN n.over IS NOT NULL AND l.items IS NULL THEN NULL
            WHEN r.completed > 0 OR r.call IS NOT NULL THEN 'running'
            WHEN r.delay = 'started' THEN 'delayed'
            WHEN r.delay = 'completed' THEN 'ready'
            ELSE r.delay END AS state,
       r.attempts, l.items, iif(n.over IS NOT NULL, coalesce(r.completed, 0), NULL) AS items_completed, iif(n.over IS NOT NULL, coalesce(r.failed, 0), NULL) AS items_failed,
       iif(n.over IS NOT NULL, coalesce(r.running, 0), NULL) AS items_running, r.started_at, r.ended_at, n.revision, n.shard
FROM node AS n
LEFT JOIN did AS r ON r.run_id = n.run_id AND r.number = n.number
LEFT JOIN items AS l ON l.run_id = n.run_id AND l.number = n.number;
