-- A migrator waits for another one as long as its context lets it, and a migration
-- may take its time.
SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true);
