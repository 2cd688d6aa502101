-- Records that a run was created as a copy of the run $6.
INSERT INTO durable.event (at, txid, shard, type, run_id, actor, reason, old_value)
VALUES ($3::timestamptz, greatest(pg_current_xact_id(), (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text::xid8),
        $1::smallint, 4, $2::uuid, $4::text, $5::text, $6::text);
