-- Makes the settings with which every transaction of the engine runs.
--
-- On a direct connection they are made once for the session ($1 is false, $2 is the process ID that the
-- server announced when the session began). A pooler announces a process ID of its own, so behind a
-- pooler this changes nothing and returns no row. There, and in every mode made for poolers, the settings
-- are made for one transaction at a time ($1 is true, $2 is zero), because a pooler would pass settings
-- of the session on to other clients.
--
-- The planner: statements over unnest() are planned once, with a generic plan, on tables that may be
-- empty today and huge tomorrow. The right plan is always the same, one index probe per item, so all
-- other plans are disabled. The timeouts: the defaults of the database and the role are meant for users.
-- search_path: the engine uses no operator, function or type that another role has created, in public or
-- elsewhere. plan_cache_mode is $4. synchronous_commit: off becomes on if $3 is true; stronger values are kept. Settings that
-- this server does not have are left out.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config(setting.name, setting.value, $1::boolean)
FROM (VALUES
    ('search_path', 'pg_catalog, pg_temp'),
    ('synchronous_commit', CASE WHEN $3::boolean AND pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN 'on'
                                ELSE pg_catalog.current_setting('synchronous_commit') END),
    ('plan_cache_mode', $4::pg_catalog.text), -- force_generic_plan, except on Citus
    ('enable_indexscan', 'on'),
    ('enable_nestloop', 'on'),
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
    ('lock_timeout', '100ms'), -- a flush delays others; set_lock_timeout.sql sets other values
    ('idle_in_transaction_session_timeout', '60s'),
    ('idle_session_timeout', '0'),
    ('transaction_timeout', '0'),
    ('client_encoding', 'UTF8'),
    ('standard_conforming_strings', 'on'),
    ('DateStyle', 'ISO, YMD'),
    ('IntervalStyle', 'postgres'),
    ('TimeZone', 'UTC'), -- a day has 24 hours: control_shift_timers.sql adds intervals
    ('bytea_output', 'hex'),
    ('array_nulls', 'on') -- in modes that send arrays as text, off makes every NULL in them the text NULL
) AS setting(name, value)
WHERE ($2::integer OPERATOR(pg_catalog.=) 0 OR $2::integer OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())
  AND pg_catalog.current_setting(setting.name, true) IS NOT NULL;
