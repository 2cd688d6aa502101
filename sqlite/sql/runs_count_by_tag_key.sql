-- Counts the runs that have a tag with the key, up to a limit.
SELECT count(*)
FROM (SELECT 1 FROM durable_tag WHERE key = ? LIMIT ? + 0);
