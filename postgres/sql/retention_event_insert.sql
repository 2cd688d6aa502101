-- Writes the events of runs, $2, $3, that a person has deleted, with their IDs $4 and how many runs were deleted with each, $5.
-- It returns the runs.
INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value, new_value)
SELECT $1::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
       item.shard, 5, item.id, $6::text, $7::text, item.name, item.runs
FROM unnest($2::smallint[], $3::uuid[], $4::text[], $5::text[]) AS item(shard, id, name, runs)
RETURNING run_id;
