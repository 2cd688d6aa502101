-- Sets how long the statements of this transaction wait for a lock, and how long the transaction may stand still between two
-- round trips. Both have a unit, as in 20ms. A process that is stopped then holds its locks no longer than that.
SELECT set_config('lock_timeout', $1::text, true), set_config('idle_in_transaction_session_timeout', $2::text, true);
