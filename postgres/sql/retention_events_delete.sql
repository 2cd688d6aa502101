-- Deletes the oldest events up to the first one that is not older than $1, and returns how many. It reads at most $2 events of
-- each shard, and deletes none after an event that it has not read. So the events that are left
-- are always the latest ones, in the order of events_page.sql.
WITH page AS MATERIALIZED (
    SELECT e.shard, e.txid, e.run_id, e.type, e.at, e.number
    FROM generate_series(0, 63) AS place(shard)
    CROSS JOIN LATERAL (
        SELECT own.shard, own.txid, own.run_id, own.type, own.at, row_number() OVER (ORDER BY own.txid, own.run_id, own.type) AS number
        FROM (
            SELECT o.shard, o.txid, o.run_id, o.type, o.at FROM durable.event AS o
            WHERE o.shard = place.shard::smallint AND o.txid < pg_snapshot_xmin(pg_current_snapshot())
            ORDER BY o.txid, o.run_id, o.type
            LIMIT $2::integer
        ) AS own
    ) AS e
), old AS MATERIALIZED (
    SELECT page.shard, page.txid, page.run_id, page.type,
           bool_and(page.at < $1::timestamptz) OVER before AND coalesce(bool_and(page.number < $2::integer) OVER earlier, true) AS gone
    FROM page
    WINDOW before AS (ORDER BY page.txid, page.run_id, page.type),
           earlier AS (ORDER BY page.txid, page.run_id, page.type ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), deleted AS (
    DELETE FROM durable.event AS e
    USING old
    WHERE old.gone AND e.shard = old.shard AND e.txid = old.txid AND e.run_id = old.run_id AND e.type = old.type
    RETURNING e.type
)
SELECT count(*) FROM deleted;
