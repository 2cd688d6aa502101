-- Begins the transaction of a Tx step and marks it. It is read-write even if the role or the database has
-- another default. The mark ends with the transaction, so that tx_step_check_begun.sql detects whether the step's
-- function has ended the transaction.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
BEGIN READ WRITE;
SELECT pg_catalog.set_config('durable_users.step', 'begun', true);
