-- Records events of runs, $4, $5, that a person has requested, in the transaction of the change. It returns the runs.
INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value, new_value)
SELECT $1::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
       item.shard, item.type, item.id, $2::text, $3::text, item.old_value, item.new_value
FROM unnest($4::smallint[], $5::uuid[], $6::smallint[], $7::text[], $8::text[]) AS item(shard, id, type, old_value, new_value)
RETURNING run_id;
