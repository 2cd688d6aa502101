-- Hints that runs became claimable, by an empty text. At most once in a transaction: a transaction that
-- notifies takes a lock that all others that notify wait for at their commit.
SELECT pg_notify($1::text, $2::text);
