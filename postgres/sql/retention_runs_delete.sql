-- Deletes the runs $1, $2, which are locked, and superseded generations by their archive IDs, with everything that is theirs.
-- It returns the runs.
WITH gone AS MATERIALIZED (
    SELECT item.shard, item.id
    FROM unnest($1::smallint[], $2::uuid[]) AS item(shard, id)
), steps AS (
    DELETE FROM durable.step AS s
    USING gone
    WHERE s.shard = gone.shard AND s.run_id = gone.id
), signals AS (
    DELETE FROM durable.signal AS s
    USING gone
    WHERE s.shard = gone.shard AND s.run_id = gone.id
), tags AS (
    DELETE FROM durable.tag AS t
    USING gone
    WHERE t.shard = gone.shard AND t.run_id = gone.id
), permits AS (
    DELETE FROM durable.permit AS p
    USING gone
    WHERE p.shard = gone.shard AND p.run_id = gone.id
), places AS (
    DELETE FROM durable.place AS p
    USING gone
    WHERE p.shard = gone.shard AND p.run_id = gone.id
), divergences AS (
    DELETE FROM durable.divergence AS d
    USING gone
    WHERE d.shard = gone.shard AND d.run_id = gone.id
), generations AS (
    DELETE FROM durable.generation AS g
    USING gone
    WHERE g.shard = gone.shard AND g.archive_id = gone.id
)
DELETE FROM durable.run AS r
USING gone
WHERE r.shard = gone.shard AND r.id = gone.id
RETURNING r.id;
