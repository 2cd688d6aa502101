-- Reads the keys under which starts fold, those first at which a worker looks first. The caller compares look_at with the
-- time, so that one statement tells both what is due and when the next one is.
SELECT workflow, key, kind, look_at
FROM durable_fold
ORDER BY look_at
LIMIT ? + 0;
