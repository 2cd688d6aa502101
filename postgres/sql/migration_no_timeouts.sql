-- Removes the timeouts of this transaction. A migrator waits for another one until its context ends, and
-- a migration may take any time.
SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true);
