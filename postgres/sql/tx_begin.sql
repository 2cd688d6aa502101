-- Begins the transaction of a Tx step, read-write also where a role or database defaults to the other, and marks it. The mark
-- ends with the transaction, so tx_mark.sql finds out whether the step's function has ended it.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
BEGIN READ WRITE;
SELECT pg_catalog.set_config('durable_users.step', 'begun', true);
