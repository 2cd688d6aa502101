-- Returns the bounds of limits, until when nothing is granted under them, and what code has declared. The last column tells whether a worker
-- of version $2 that started at $3 may declare other bounds at $4: see limit_declare.sql.
SELECT l.name, l.concurrent, l.rate, l.period_us, l.burst, l.closed_until, l.chosen IS NOT NULL, l.declared, l.declared_version,
       CASE WHEN l.declared_version = $2::text THEN coalesce(l.declarer_started_at < $3::timestamptz OR l.declarer_started_at > $4::timestamptz, false)
            ELSE NOT $2::text = ANY (l.older_versions) END
FROM durable.step_limit AS l
WHERE l.name = ANY ($1::text[]);
