-- Inserts two steps with the output ?5 for each run of age_run.sqlite.sql, which computes the same
-- IDs.
WITH RECURSIVE series(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ?2),
made AS (
    SELECT n, n * 37 % 64 AS shard, ?4 - 2592000000000 + 2592000000000 / ?3 * n AS at
    FROM series
), named AS (
    SELECT n, shard, at, printf('%012x7%03x8%03x%010x%02x', at / 1000, n % 4096, n / 4096 % 4096, n, shard) AS hex
    FROM made
)
INSERT INTO durable_step (shard, run_id, name, kind, status, attempt, epoch, started_at, ended_at, output)
SELECT shard, unhex(hex), step.name, 1, 3, 1, 1 << 32 | named.n, at, at + 1000, ?5
FROM named
CROSS JOIN (SELECT 'step-0' AS name UNION ALL SELECT 'step-1') AS step;
