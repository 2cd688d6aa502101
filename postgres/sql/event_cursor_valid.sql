-- Returns whether a cursor is still valid: its event exists, or was deleted together with all older
-- events. If its event is gone but older events exist, the database was restored to a state before the
-- cursor was returned, and transaction IDs are assigned again; so the events after the cursor are
-- unknown. The statement reads only the oldest event of each shard.
SELECT EXISTS (
    SELECT FROM durable.event AS e
    WHERE e.shard = $1::smallint AND e.txid = $2::text::xid8 AND e.run_id = $3::uuid AND e.type = $4::smallint AND e.at = $5::timestamptz
) OR NOT EXISTS (
    SELECT FROM generate_series(0, 63) AS place(shard)
    CROSS JOIN LATERAL (
        SELECT e.at FROM durable.event AS e
        WHERE e.shard = place.shard::smallint
        ORDER BY e.txid, e.run_id, e.type
        LIMIT 1
    ) AS oldest
    WHERE oldest.at < $5::timestamptz
);
