-- Returns the server's settings, which are printed with the figures.
SELECT string_agg(name || '=' || current_setting(name), ' ' ORDER BY name)
FROM unnest(ARRAY['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size', 'server_version', 'autovacuum']) AS name;
