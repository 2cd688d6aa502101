-- Returns how many signals that no step has received wait for each of the runs, by name.
SELECT item.run_id, s.name, s.count
FROM unnest($1::smallint[], $2::uuid[]) WITH ORDINALITY AS item(shard, run_id, ordinal)
CROSS JOIN LATERAL (
    SELECT q.name, count(*) AS count
    FROM durable.signal AS q
    WHERE q.shard = item.shard AND q.run_id = item.run_id AND q.step IS NULL
    GROUP BY q.name
) AS s
ORDER BY item.ordinal, s.name;
