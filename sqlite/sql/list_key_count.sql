-- How many runs have a tag of any value, up to a bound.
SELECT count(*)
FROM (SELECT 1 FROM durable_tag WHERE key = ? LIMIT ? + 0);
