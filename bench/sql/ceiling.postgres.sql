-- Ceiling: inserts every waiting row in one statement and one transaction. Conflicts are
-- impossible, so the statement does not handle them.
INSERT INTO bench.ceiling_step (shard, run_id, name, output)
SELECT shard, run_id, name, output
FROM unnest($1::smallint[], $2::uuid[], $3::text[], $4::bytea[]) AS item(shard, run_id, name, output);
