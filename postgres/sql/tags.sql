-- The tags of one run. Compared as a row, and sorted outside, so that only the primary key
-- fits: on a table that was empty when it was analyzed, the index by key and value ties
-- with it otherwise, and is read in full.
SELECT t.key, t.value
FROM (
    SELECT t.key, t.value
    FROM durable.tag AS t
    WHERE t.shard = $1::smallint
      AND (t.shard, t.run_id) >= ($1::smallint, $2::uuid) AND (t.shard, t.run_id) <= ($1::smallint, $2::uuid)
    OFFSET 0
) AS t
ORDER BY t.key;
