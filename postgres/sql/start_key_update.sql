-- Writes the row of one key, which this transaction has locked.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
UPDATE durable.fold AS f
SET check_at = $5::pg_catalog.timestamptz, after_shard = $6::smallint, after_id = $7::pg_catalog.uuid,
    waiting_id = $8::pg_catalog.uuid, state = $9::pg_catalog.bytea, input = $10::pg_catalog.bytea
WHERE f.shard OPERATOR(pg_catalog.=) $1::smallint AND f.workflow OPERATOR(pg_catalog.=) $2::pg_catalog.text
  AND f.key OPERATOR(pg_catalog.=) $3::pg_catalog.text AND f.kind OPERATOR(pg_catalog.=) $4::smallint
RETURNING f.kind;
