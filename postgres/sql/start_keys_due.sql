-- Reads the keys under which starts fold, those first at which a worker looks first. The caller compares
-- check_at with the time, so that one statement tells both what is due and when the next one is.
SELECT f.workflow, f.key, f.kind, f.check_at
FROM durable.fold AS f
ORDER BY f.check_at
LIMIT $1::integer;
