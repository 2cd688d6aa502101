-- Returns the tags of one run. The row comparison, and the sort outside of the subquery, allow only the
-- primary key. Otherwise, on a table that was empty when it was analyzed, the planner may choose the
-- index by key and value, and read all of it.
SELECT t.key, t.value
FROM (
    SELECT t.key, t.value
    FROM durable.tag AS t
    WHERE t.shard = $1::smallint
      AND (t.shard, t.run_id) >= ($1::smallint, $2::uuid) AND (t.shard, t.run_id) <= ($1::smallint, $2::uuid)
    OFFSET 0
) AS t
ORDER BY t.key;
