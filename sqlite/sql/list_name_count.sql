-- How many runs have names that begin with a text, up to a bound.
SELECT count(*)
FROM (SELECT 1 FROM durable_run WHERE name >= ? AND name < coalesce(?, x'') LIMIT ? + 0);
