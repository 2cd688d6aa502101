-- Makes the commit of a user's transaction wait for the disk, if the role, the database or the user has
-- turned that off. Stronger values are kept. The setting ends with the transaction.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
WHERE pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off';
