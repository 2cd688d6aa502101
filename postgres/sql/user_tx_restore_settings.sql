-- Restores the settings of a user's transaction that user_tx_set_settings.sql has changed.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.set_config(setting.name, pg_catalog.current_setting(pg_catalog.concat('durable_users.', setting.name)), true)
FROM (VALUES ('client_encoding'), ('DateStyle'), ('bytea_output'), ('array_nulls')) AS setting(name);
