-- Sets how text and values are sent in a user's transaction, for the statements of durable in it, and
-- saves the former settings for user_tx_restore_settings.sql. pgx sends UTF-8; a server that expects another encoding would
-- store other names. In modes with results as text, pgx reads only one text form of each type. In modes with
-- arrays as text, array_nulls = off makes every NULL in an array the text NULL.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config(setting.name,
    CASE WHEN pg_catalog.set_config(pg_catalog.concat('durable_users.', setting.name), pg_catalog.current_setting(setting.name), true) IS NOT NULL
         THEN setting.value END, true)
FROM (VALUES ('client_encoding', 'UTF8'), ('DateStyle', 'ISO, YMD'), ('bytea_output', 'hex'), ('array_nulls', 'on')) AS setting(name, value);
