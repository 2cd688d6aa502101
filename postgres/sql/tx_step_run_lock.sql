-- Takes the lock of tx_step_checkpoint.sql's fence at the beginning of a transaction. If it returns no row, the
-- writer no longer owns the run; tx_step_checkpoint.sql will detect that.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT FROM durable.run AS r
WHERE r.shard OPERATOR(pg_catalog.=) $1::smallint AND r.id OPERATOR(pg_catalog.=) $2::pg_catalog.uuid AND r.epoch OPERATOR(pg_catalog.=) $3::bigint AND r.status OPERATOR(pg_catalog.=) 2
FOR SHARE;
