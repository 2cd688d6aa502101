-- The settings that every transaction of the engine runs with.
--
-- On a direct connection they are set once for the session ($1 false, $2 the
-- process ID that the server announced when the session began). A pooler announces
-- an ID of its own, so there this sets nothing and answers no row. Then, and in
-- every mode made for poolers, they are set for one transaction at a time ($1 true,
-- $2 zero), since a pooler would hand session settings on to strangers.
--
-- The planner's: statements over unnest() are planned once, blindly, on tables that
-- may be empty today and huge tomorrow. What they must do is always the same, one
-- index probe per item, so everything else is taken from the planner's table.
-- The timeouts: what the database or the role defaults to is made for users.
SELECT set_config(setting.name, setting.value, $1::boolean)
FROM (VALUES
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
    ('lock_timeout', '1s'),
    ('idle_in_transaction_session_timeout', '60s'),
    ('idle_session_timeout', '0'),
    ('DateStyle', 'ISO, YMD'),
    ('TimeZone', 'UTC'), -- a day is 24 hours: order_freeze.sql adds intervals
    ('bytea_output', 'hex')
) AS setting(name, value)
WHERE $2::integer = 0 OR $2::integer = pg_backend_pid();
