-- Sets how long the statements of this transaction wait for a lock; $1 has a unit, as in 20ms.
SELECT set_config('lock_timeout', $1::text, true);
