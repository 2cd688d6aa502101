-- Inserts the runs $1 to $2 of $3 that are listed, as the engine would have left them, without steps: of ten workflows and a hundred
-- versions, one in a hundred failed, one in ten thousand paused, one in a thousand with a tag. They were started over the last thirty days.
WITH made AS (
    SELECT n, (n * 37 % 64)::smallint AS shard, at, n % 100 = 7 AS failed, n % 10000 = 5 AS paused,
           (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(noise, 1, 3) || '8' || substr(noise, 4, 13)
               || lpad(to_hex(n * 37 % 64), 2, '0'))::uuid AS id
    FROM generate_series($1::integer, $2::integer - 1) AS n
    CROSS JOIN LATERAL (
        SELECT clock_timestamp() - interval '30 days' + interval '30 days' * n / $3::integer AS at, md5(n::text) AS noise
    ) AS of_this
), run AS (
    INSERT INTO durable.run (shard, id, name, workflow, queue, version, lane, status, epoch, input, output, error, failed_step, failed_type, created_at, started_at, ended_at)
    SELECT shard, id, 'listed-' || n, 'listed-' || n / 100 % 10, 'default', 'v' || n::bigint * 100 / $3::integer, 0,
           CASE WHEN failed THEN 6 WHEN paused THEN 4 ELSE 5 END, 1::bigint << 32 | n, '1', CASE WHEN NOT failed AND NOT paused THEN '1'::bytea END,
           CASE WHEN failed THEN '{"message":"declined"}'::bytea END, CASE WHEN failed THEN 'charge' END, CASE WHEN failed THEN 'declined' END,
           at, at, CASE WHEN NOT paused THEN at + interval '2 ms' END
    FROM made
)
INSERT INTO durable.tag (shard, run_id, key, value)
SELECT shard, id, 'bench.tag', (n / 1000 % 100)::text FROM made WHERE n % 1000 = 3;
