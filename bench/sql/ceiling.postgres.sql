-- The ceiling: every row that waits, in one statement and one transaction. A conflict
-- cannot be, so that nothing is looked for.
INSERT INTO bench.ceiling_step (shard, run_id, name, output)
SELECT shard, run_id, name, output
FROM unnest($1::smallint[], $2::uuid[], $3::text[], $4::bytea[]) AS item(shard, run_id, name, output);
