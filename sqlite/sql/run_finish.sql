-- Ends one ownership of a run: finished, parked, given back or set aside. Only the
-- epoch that still runs it (2) may. The last two placeholders say what keeps it out at the
-- first try: which bits of what was asked of the run (control), and, for one that parks,
-- that it was woken. One that is given back (1) keeps the reason why it was held before. finish.go judges what it meets there, and writes again without.
UPDATE durable_run
SET status = ?,
    output = CAST(? AS BLOB),
    error = CAST(? AS BLOB),
    reason = coalesce(?, CASE WHEN ? = 1 THEN reason END),
    trace = coalesce(?, trace),
    wake_at = ?,
    ended_at = ?,
    owner = NULL,
    woken = 0
WHERE shard = ? AND id = ? AND epoch = ? AND status = 2 AND (control & ?) = 0 AND (woken & ?) = 0;
