-- Hints that runs became claimable, by an empty text. At most once in a transaction: a transaction that
-- notifies takes a lock that all others that notify wait for at their commit.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.pg_notify($1::pg_catalog.text, $2::pg_catalog.text);
