-- Locks the row of one key under which starts fold, and reads it.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT f.check_at, f.after_id, f.waiting_id, f.state, f.input
FROM durable.fold AS f
WHERE f.shard OPERATOR(pg_catalog.=) $1::smallint AND f.workflow OPERATOR(pg_catalog.=) $2::pg_catalog.text
  AND f.key OPERATOR(pg_catalog.=) $3::pg_catalog.text AND f.kind OPERATOR(pg_catalog.=) $4::smallint
FOR NO KEY UPDATE;
