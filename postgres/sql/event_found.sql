-- Whether a cursor still leads on: its event is there, or, like everything that is older, was swept.
-- If it is gone and older ones are there, the database is in an earlier state than the one that the cursor
-- is of, and numbers are given anew: what came after it cannot be told. The oldest of each shard is looked at.
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
