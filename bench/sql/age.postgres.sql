-- Inserts the finished runs $1 to $2 of $3, as the engine would have left them. Each has two steps
-- with the output $4. The runs ended over the last thirty days, in the order of their IDs, which
-- are UUIDv7 with the shard in the last six bits (see internal/store/uuid.go).
WITH made AS (
    SELECT n, (n * 37 % 64)::smallint AS shard, at,
           (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(noise, 1, 3) || '8' || substr(noise, 4, 13)
               || lpad(to_hex(n * 37 % 64), 2, '0'))::uuid AS id
    FROM generate_series($1::integer, $2::integer - 1) AS n
    CROSS JOIN LATERAL (
        SELECT clock_timestamp() - interval '30 days' + interval '30 days' * n / $3::integer AS at, md5(n::text) AS noise
    ) AS of_this
), run AS (
    INSERT INTO durable.run (shard, id, name, workflow, queue, lane, status, epoch, input, output, created_at, started_at, ended_at)
    SELECT shard, id, id::text, 'bench', 'default', 0, 5, 1::bigint << 32 | n, '1', '1', at, at, at + interval '2 ms'
    FROM made
)
INSERT INTO durable.step (shard, run_id, name, kind, status, attempt, epoch, output, started_at, ended_at)
SELECT shard, id, 'step-' || step, 1, 3, 1, 1::bigint << 32 | n, $4::bytea, at, at + interval '1 ms'
FROM made
CROSS JOIN generate_series(0, 1) AS step;
