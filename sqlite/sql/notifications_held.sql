-- How many runs the worker owns, by the index of owners alone: if they are fewer than it
-- holds, some were ended or taken over.
SELECT count(*)
FROM durable_run
WHERE owner = ? AND owner IS NOT NULL;
