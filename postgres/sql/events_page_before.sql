-- Returns the events before a cursor, the newest first, of those that events_page.sql can return.
SELECT event.txid::text, event.run_id, event.type, event.at, coalesce(run.name, ''), coalesce(run.workflow, ''),
       run.parent_id IS NOT NULL,
       coalesce(event.actor, ''), coalesce(event.reason, ''), coalesce(event.old_value, ''), coalesce(event.new_value, '')
FROM (
    SELECT e.*
    FROM generate_series(0, 63) AS place(shard)
    CROSS JOIN LATERAL (
        SELECT e.* FROM durable.event AS e
        WHERE e.shard = place.shard::smallint
          AND (e.txid, e.run_id, e.type) < ($1::text::xid8, $2::uuid, $3::smallint)
          AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY e.txid DESC, e.run_id DESC, e.type DESC
        LIMIT $4::integer
    ) AS e
    ORDER BY e.txid DESC, e.run_id DESC, e.type DESC
    LIMIT $4::integer
) AS event
LEFT JOIN LATERAL (
    SELECT r.name, r.workflow, r.parent_id FROM durable.run AS r
    WHERE r.shard = event.shard AND r.id = event.run_id
    OFFSET 0
) AS run ON true
ORDER BY event.txid DESC, event.run_id DESC, event.type DESC;
