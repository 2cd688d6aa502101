-- Graphs for users of psql: the nodes and edges of runs, as far as rows show them.

-- See 0001_core.sql.
SET LOCAL search_path = pg_catalog, pg_temp;

-- The newest shape that each run of a graph has recorded. Codecs do not encode shapes.
CREATE VIEW durable.shapes AS
SELECT DISTINCT ON (s.shard, s.run_id) s.run_id, substr(s.name, 7)::integer AS revision, durable.payload_json(s.output) AS shape, s.shard
FROM durable.step AS s
WHERE s.kind OPERATOR(pg_catalog.=) 17 AND s.status OPERATOR(pg_catalog.=) 3 AND s.name ~ '^shape\x1f[1-9][0-9]{0,8}$'
  AND s.shard OPERATOR(pg_catalog.=) ANY (durable.all_shards())
ORDER BY s.shard, s.run_id, revision DESC;

-- An edge leads from a node to one that refers to it. choice is the number of the choice of the latter, which needs k of its nodes.
CREATE VIEW durable.edges AS
SELECT g.run_id, e.from_node, n.node ->> 'name' AS to_node, e.choice, e.k, e.of, e.after, e.condition, e.over, n.number AS to_number, g.revision, g.shard
FROM durable.shapes AS g
CROSS JOIN LATERAL json_array_elements(CASE json_typeof(g.shape -> 'nodes') WHEN 'array' THEN g.shape -> 'nodes' END) WITH ORDINALITY AS n (node, number)
CROSS JOIN LATERAL (
    SELECT need.name, NULL::bigint, NULL::integer, NULL::integer, false,
           EXISTS (SELECT FROM json_array_elements_text(n.node -> 'if') AS i (name) WHERE i.name = need.name), need.name IS NOT DISTINCT FROM n.node ->> 'over'
    FROM json_array_elements_text(n.node -> 'needs') AS need (name)
    UNION ALL
    SELECT member.name, c.number, (c.choice ->> 'k')::integer, json_array_length(c.choice -> 'of'), false, false, false
    FROM json_array_elements(n.node -> 'choices') WITH ORDINALITY AS c (choice, number)
    CROSS JOIN LATERAL json_array_elements_text(c.choice -> 'of') AS member (name)
    UNION ALL
    SELECT need.name, NULL, NULL, NULL, true, false, false
    FROM json_array_elements_text(n.node -> 'after') AS need (name)
) AS e (from_node, choice, k, of, after, condition, over);

-- The state is NULL for a node of which nothing is recorded: it waits, is ready, or is skipped because of another one; which follows
-- from the states of the others, and Engine.Graph tells it. ORDER BY run_id, number is the order of declaration.
CREATE VIEW durable.nodes AS
SELECT g.run_id, n.number, n.name, n.node ->> 'kind' AS kind, n.node ->> 'workflow' AS workflow, n.node ->> 'over' AS over,
       CASE WHEN r.skips > 0 THEN 'skipped'
            WHEN r.fails > 0 THEN 'failed'
            WHEN n.node ->> 'over' IS NULL AND r.call IN ('completed', 'failed', 'cancelled') THEN r.call
            WHEN r.running = 0 AND r.failed > 0 AND r.completed + r.failed >= l.items THEN 'failed'
            WHEN r.running = 0 AND r.completed > 0 AND r.completed >= l.items THEN 'completed'
            WHEN r.held > 0 AND (n.node -> 'delayed' IS NULL OR r.delay = 'completed') THEN 'completed'
            WHEN r.call = 'cancelled' THEN 'cancelled'
            WHEN EXISTS (
                SELECT FROM durable.step AS c -- the row itself, because the planner takes the view for too large to be read once for each node
                CROSS JOIN LATERAL (SELECT durable.payload_json(c.output) -> 'ended') AS choice (ended)
                CROSS JOIN LATERAL json_array_elements_text(CASE json_typeof(choice.ended) WHEN 'array' THEN choice.ended END) AS ended (name)
                WHERE c.shard = g.shard AND c.run_id = g.run_id AND c.kind OPERATOR(pg_catalog.=) 4 AND c.status OPERATOR(pg_catalog.=) 3 AND ended.name || '/' = n.scope) THEN 'cancelled'
            WHEN r.cancelled > 0 THEN 'cancelled'
            WHEN r.running > 0 THEN 'running'
            WHEN r.failed > 0 THEN 'failed'
            WHEN n.node ->> 'over' IS NOT NULL AND l.items IS NULL THEN NULL
            WHEN (r.completed > 0 OR r.call IS NOT NULL OR r.delay = 'completed')
                AND EXISTS (SELECT FROM durable.run AS ended WHERE ended.shard = g.shard AND ended.id = g.run_id AND ended.ended_at IS NOT NULL) THEN 'cancelled'
            WHEN r.completed > 0 OR r.call IS NOT NULL THEN 'running'
            WHEN r.delay = 'started' THEN 'delayed'
            WHEN r.delay = 'completed' THEN 'ready'
            ELSE r.delay END AS state,
       r.attempts, l.items, CASE WHEN n.node ->> 'over' IS NOT NULL THEN r.completed END AS items_completed,
       CASE WHEN n.node ->> 'over' IS NOT NULL THEN r.failed END AS items_failed, CASE WHEN n.node ->> 'over' IS NOT NULL THEN r.running END AS items_running,
       r.started_at, r.ended_at, g.revision, g.shard
FROM durable.shapes AS g
CROSS JOIN LATERAL (
    SELECT node, number, node ->> 'name', replace(replace(node ->> 'name', '%', '%25'), '/', '%2F') || '/',
           CASE node ->> 'kind' WHEN 'each child' THEN 'children' ELSE node ->> 'kind' END,
           replace(replace(node ->> 'over', '%', '%25'), '/', '%2F') || '/'
    FROM json_array_elements(CASE json_typeof(g.shape -> 'nodes') WHEN 'array' THEN g.shape -> 'nodes' END) WITH ORDINALITY AS n (node, number)
) AS n (node, number, name, scope, call, list)
CROSS JOIN LATERAL (
    SELECT max(s.status) FILTER (WHERE s.name = n.scope || n.call) AS call,
           max(s.status) FILTER (WHERE s.name = n.scope || 'delay') AS delay,
           count(*) FILTER (WHERE s.name = n.scope || 'skip') AS skips,
           count(*) FILTER (WHERE s.name = n.scope || 'held' AND s.status = 'completed') AS held,
           count(*) FILTER (WHERE s.kind = 'choice' AND starts_with(s.name, n.scope || 'fails with ') OR s.name = n.scope || 'failure' AND s.status = 'failed') AS fails,
           count(*) FILTER (WHERE starts_with(s.name, n.scope || n.call || '/') AND s.status = 'completed') AS completed,
           count(*) FILTER (WHERE starts_with(s.name, n.scope || n.call || '/') AND s.status = 'failed') AS failed,
           count(*) FILTER (WHERE starts_with(s.name, n.scope || n.call || '/') AND s.status IN ('started', 'backoff')) AS running,
           count(*) FILTER (WHERE starts_with(s.name, n.scope || n.call || '/') AND s.status = 'cancelled') AS cancelled,
           sum(s.attempt) FILTER (WHERE starts_with(s.name, n.scope || n.call)) AS attempts,
           min(s.started_at) AS started_at, max(s.ended_at) FILTER (WHERE starts_with(s.name, n.scope || n.call)) AS ended_at
    FROM durable.steps AS s
    WHERE s.shard = g.shard AND s.run_id = g.run_id AND starts_with(s.name, n.scope)
) AS r
LEFT JOIN LATERAL (
    SELECT CASE json_typeof(value.list) WHEN 'array' THEN json_array_length(value.list)
                WHEN 'string' THEN length(rtrim(value.list #>> '{}', '=')) * 3 / 4 -- a list of bytes, in base64
                ELSE value.items END
    FROM (
        SELECT max(s.output::text) FILTER (WHERE s.name IN (n.list || 'step', n.list || 'child', n.list || 'receive'))::json,
               NULLIF(count(*) FILTER (WHERE starts_with(s.name, n.list || 'each/') OR starts_with(s.name, n.list || 'children/')), 0)
        FROM durable.steps AS s
        WHERE s.shard = g.shard AND s.run_id = g.run_id AND starts_with(s.name, n.list) AND s.status = 'completed'
    ) AS value (list, items)
) AS l (items) ON n.list IS NOT NULL;

INSERT INTO durable.migration (version, name) VALUES (6, '0006_graphs.sql');
