-- Selects the newest runs below an ID, without payloads. Runs that the filter excludes are scanned and skipped. The plus
-- signs keep the scan on the primary key, which does not begin with the shard. Every text is less than a blob. LIMIT ? + 0 in
-- all list statements: SQLite uses the value of a bare parameter when it plans, and so would plan again at each call. ?1 is
-- not used.
SELECT id, parent_id, name, workflow, version, queue, priority, status, epoch, owner,
       CASE WHEN durable_run.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable_step AS s WHERE s.run_id = durable_run.id) > durable_run.progress THEN 0 ELSE durable_run.crashes END,
       NULL, NULL, error,
       reason, trace, created_at, started_at, ended_at, wake_at, deadline_at,
       detached, control, paused_by, cancelled_by, cancel_reason, paused_at, cancelled_at, woken, progress
FROM durable_run
WHERE id < ?2 AND id >= ?23
  AND (?4 = '' OR workflow = ?4)
  AND (?5 = '' OR queue = ?5)
  AND (?6 = 0 OR (?6 >> status) & 1)
  AND (?14 = 0 OR (?14 >> priority + 31) & 1)
  AND (?7 IS NULL OR created_at > ?7)
  AND (?8 IS NULL OR created_at < ?8)
  AND (?9 = 0 OR parent_id = x'')
  AND (?19 = '' OR +version = ?19)
  AND (?20 IS NULL OR +owner = ?20)
  AND (?21 IS NULL OR +ended_at > ?21)
  AND (?22 IS NULL OR +ended_at < ?22)
  AND +name >= ?10 AND +name < coalesce(?11, x'')
  AND (?12 = '' OR EXISTS (SELECT 1 FROM durable_tag AS tag WHERE tag.shard = durable_run.shard AND tag.run_id = durable_run.id AND tag.key = ?12))
ORDER BY id DESC
LIMIT ?3 + 0;
