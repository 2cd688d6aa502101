-- Sends a notification; an empty payload ($2) means that runs became claimable, "admitted" that an admission
-- gave them places, and "queues" that a row of a queue was changed. A transaction sends at most one. All transactions that notify take the same lock at their commit, so they wait for each other.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.pg_notify($1::pg_catalog.text, $2::pg_catalog.text);
