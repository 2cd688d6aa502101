-- Says in which encoding the client sends text, up to the end of the transaction. pgx sends UTF-8,
-- and a server that is told otherwise would keep other names than were sent.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config('client_encoding', $1::pg_catalog.text, true);
