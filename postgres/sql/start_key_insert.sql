-- Creates the row of one key under which starts fold. It returns no row if the row exists: then the caller
-- locks that row and plans again. If another transaction has inserted the row and is open, it waits.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
INSERT INTO durable.fold (shard, workflow, key, kind, check_at, after_shard, after_id, waiting_id, state, input)
VALUES ($1::smallint, $2::pg_catalog.text, $3::pg_catalog.text, $4::smallint, $5::pg_catalog.timestamptz,
        $6::smallint, $7::pg_catalog.uuid, $8::pg_catalog.uuid, $9::pg_catalog.bytea, $10::pg_catalog.bytea)
ON CONFLICT (shard, workflow, key, kind) DO NOTHING
RETURNING kind;
