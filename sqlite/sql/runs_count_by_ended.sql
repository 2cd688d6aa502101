-- Counts the runs that ended between two times, up to ?3.
SELECT count(*) FROM (
    SELECT 1 FROM durable_run INDEXED BY durable_run_ended
    WHERE ended_at > coalesce(?1, 0) AND ended_at < coalesce(?2, 9223372036854775807)
    LIMIT ?3 + 0
);
