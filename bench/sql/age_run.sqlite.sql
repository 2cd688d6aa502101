-- Inserts the finished runs ?1 to ?2 of ?3, as in age.postgres.sql. ?4 is the current time, ?5 the
-- output.
WITH RECURSIVE series(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ?2),
made AS (
    SELECT n, n * 37 % 64 AS shard, ?4 - 2592000000000 + 2592000000000 / ?3 * n AS at
    FROM series
), named AS (
    SELECT n, shard, at, printf('%012x7%03x8%03x%010x%02x', at / 1000, n % 4096, n / 4096 % 4096, n, shard) AS hex
    FROM made
)
INSERT INTO durable_run (id, shard, name, workflow, queue, lane, status, epoch, created_at, started_at, ended_at, input, output)
SELECT unhex(hex), shard,
       substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-' || substr(hex, 13, 4) || '-' || substr(hex, 17, 4) || '-' || substr(hex, 21),
       'bench', 'default', 0, 5, 1 << 32 | n, at, at, at + 2000, CAST('1' AS BLOB), CAST('1' AS BLOB)
FROM named
WHERE ?5 IS NOT NULL;
