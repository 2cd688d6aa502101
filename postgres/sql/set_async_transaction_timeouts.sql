-- Sets what set_transaction_timeouts.sql sets, and that the commit of this transaction does not wait until it is on disk.
SELECT set_config('lock_timeout', $1::text, true), set_config('idle_in_transaction_session_timeout', $2::text, true), set_config('synchronous_commit', 'off', true);
