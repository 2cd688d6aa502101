-- The settings that every transaction of the engine runs with.
--
-- On a direct connection they are set once for the session ($1 false, $2 the
-- process ID that the server announced when the session began). A pooler announces
-- an ID of its own, so there this sets nothing and returns no row. Then, and in
-- every mode made for poolers, they are set for one transaction at a time ($1 true,
-- $2 zero), since a pooler would hand session settings on to strangers.
--
-- The planner's: statements over unnest() are planned once, blindly, on tables that
-- may be empty today and huge tomorrow. What they must do is always the same, one
-- index probe per item, so everything else is taken from the planner's table.
-- The timeouts: what the database or the role defaults to is made for users.
-- search_path: nothing that another role has created, in public or elsewhere, is taken for
-- an operator, function or type of PostgreSQL. synchronous_commit: where it is off, it is
-- turned on ($3 true); stronger values are kept.
-- A setting that this server does not have is left out.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config(setting.name, setting.value, $1::boolean)
FROM (VALUES
    ('search_path', 'pg_catalog, pg_temp'),
    ('synchronous_commit', CASE WHEN $3::boolean AND pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN 'on'
                                ELSE pg_catalog.current_setting('synchronous_commit') END),
    ('plan_cache_mode', 'force_generic_plan'),
    ('enable_seqscan', 'off'),
    ('enable_bitmapscan', 'off'),
    ('enable_indexonlyscan', 'off'),
    ('enable_hashjoin', 'off'),
    ('enable_mergejoin', 'off'),
    ('enable_memoize', 'off'),
    ('enable_material', 'off'),
    ('max_parallel_workers_per_gather', '0'),
    ('jit', 'off'),
    ('default_transaction_isolation', 'read committed'),
    ('default_transaction_read_only', 'off'),
    ('default_transaction_deferrable', 'off'),
    ('statement_timeout', '30s'),
    ('lock_timeout', '100ms'), -- a flush keeps others waiting; what may wait longer says so by lock_wait.sql
    ('idle_in_transaction_session_timeout', '60s'),
    ('idle_session_timeout', '0'),
    ('transaction_timeout', '0'),
    ('client_encoding', 'UTF8'),
    ('standard_conforming_strings', 'on'),
    ('DateStyle', 'ISO, YMD'),
    ('IntervalStyle', 'postgres'),
    ('TimeZone', 'UTC'), -- a day is 24 hours: control_shift_timers.sql adds intervals
    ('bytea_output', 'hex')
) AS setting(name, value)
WHERE ($2::integer OPERATOR(pg_catalog.=) 0 OR $2::integer OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())
  AND pg_catalog.current_setting(setting.name, true) IS NOT NULL;
