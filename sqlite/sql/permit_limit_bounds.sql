-- Selects the bounds of a limit, and what code has declared. The last column tells whether a worker of version ?2 that started at ?3
-- may declare other bounds at ?4: see limit_declare.sql.
SELECT concurrent, rate, period_us, burst, chosen IS NOT NULL, declared, declared_version,
       CASE WHEN declared_version = ?2 THEN declarer_started_at < ?3 OR declarer_started_at > ?4
            ELSE NOT EXISTS (SELECT 1 FROM json_each(older_versions) WHERE value = ?2) END
FROM durable_step_limit
WHERE name = ?1;
