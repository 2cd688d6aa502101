-- Counts the runs whose names begin with a prefix, up to a limit.
SELECT count(*)
FROM (SELECT 1 FROM durable_run WHERE name >= ? AND name < coalesce(?, x'') LIMIT ? + 0);
