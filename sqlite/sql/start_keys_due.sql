-- Reads the keys under which starts fold, those first at which a worker looks first. The caller compares check_at with the
-- time, so that one statement tells both what is due and when the next one is. The condition is true for every row: it makes
-- SQLite search the index from its beginning.
SELECT workflow, key, kind, check_at
FROM durable_fold
WHERE check_at > -9223372036854775807
ORDER BY check_at
LIMIT ? + 0;
