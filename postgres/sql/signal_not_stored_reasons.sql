-- Returns why signals were not stored: the state of the run, whether an earlier try stored the signal
-- itself, and the signal that used its key first. Each of them may be missing.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT item.ordinal, run.status, run.epoch, run.control, own.id IS NOT NULL,
       used.id, used.name, used.payload, used.created_at
FROM unnest($1::smallint[], $2::pg_catalog.uuid[], $3::pg_catalog.uuid[], $4::pg_catalog.text[]) WITH ORDINALITY AS item(shard, run_id, id, key, ordinal)
LEFT JOIN LATERAL (
    SELECT r.status, r.epoch, r.control FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) item.shard AND r.id OPERATOR(pg_catalog.=) item.run_id
    OFFSET 0
) AS run ON true
LEFT JOIN LATERAL (
    SELECT s.id FROM durable.signal AS s
    WHERE s.shard OPERATOR(pg_catalog.=) item.shard AND s.run_id OPERATOR(pg_catalog.=) item.run_id AND s.id OPERATOR(pg_catalog.=) item.id
    OFFSET 0
) AS own ON true
LEFT JOIN LATERAL (
    SELECT s.id, s.name, s.payload, s.created_at FROM durable.signal AS s
    WHERE s.shard OPERATOR(pg_catalog.=) item.shard AND s.run_id OPERATOR(pg_catalog.=) item.run_id AND s.key OPERATOR(pg_catalog.=) item.key
    OFFSET 0
) AS used ON true;
