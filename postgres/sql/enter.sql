-- Sets how text and values are sent in a transaction of a user's, for durable's statements in it, and
-- keeps what it was for leave.sql. pgx sends UTF-8, and a server that is told otherwise would keep
-- other names than were sent; in modes in which results come as text, it reads one form of them.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config(setting.name,
    CASE WHEN pg_catalog.set_config(pg_catalog.concat('durable_users.', setting.name), pg_catalog.current_setting(setting.name), true) IS NOT NULL
         THEN setting.value END, true)
FROM (VALUES ('client_encoding', 'UTF8'), ('DateStyle', 'ISO, YMD'), ('bytea_output', 'hex')) AS setting(name, value);
