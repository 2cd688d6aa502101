-- Returns the newest of the events that events_page.sql can return. It reads one event of each shard.
SELECT e.txid::text, e.run_id, e.type, e.at
FROM generate_series(0, 63) AS place(shard)
CROSS JOIN LATERAL (
    SELECT e.txid, e.run_id, e.type, e.at FROM durable.event AS e
    WHERE e.shard = place.shard::smallint AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY e.txid DESC, e.run_id DESC, e.type DESC
    LIMIT 1
) AS e
ORDER BY e.txid DESC, e.run_id DESC, e.type DESC
LIMIT 1;
