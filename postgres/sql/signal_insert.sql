-- Stores signals for runs that have not ended (5 and above), each once by its ID and by the caller's key.
-- runs_lock_for_batch.sql has locked the runs before. The count shows whether all were new; if not, signal_not_stored_reasons.sql
-- reads the existing ones.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
--
-- arrived_at is the time of the clock while the run is locked. So it is later than the time limit of a
-- receive that timed out before. Only a test sets another time.
INSERT INTO durable.signal (shard, run_id, id, name, key, payload, created_at, arrived_at)
SELECT item.shard, item.run_id, item.id, item.name, item.key, item.payload, item.created_at,
       coalesce(item.arrived_at, pg_catalog.clock_timestamp())
FROM unnest(
    $1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.uuid[], $4::pg_catalog.text[], $5::pg_catalog.text[], $6::pg_catalog.bytea[], $7::pg_catalog.timestamptz[],
    $8::pg_catalog.timestamptz[]
) AS item(shard, run_id, id, name, key, payload, created_at, arrived_at)
CROSS JOIN LATERAL (
    SELECT FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.run_id AND r.status OPERATOR(pg_catalog.<) 5
    OFFSET 0
) AS live
ON CONFLICT DO NOTHING
RETURNING true;
