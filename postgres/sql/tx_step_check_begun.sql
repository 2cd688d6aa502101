-- Returns a row if the transaction is the one that tx_step_begin.sql began.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT 1 WHERE pg_catalog.current_setting('durable_users.step', true) OPERATOR(pg_catalog.=) 'begun';
