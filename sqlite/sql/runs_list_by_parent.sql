-- Selects the newest children of a run below an ID, without payloads. It reads every child.
SELECT run.id, run.parent_id, run.name, run.workflow, run.version, run.queue, run.priority, run.status, run.epoch, run.owner,
       CASE WHEN run.crashes > 0 AND (SELECT count(*) FILTER (WHERE s.status >= 3) + count(*) FILTER (WHERE s.kind = 6) FROM durable_step AS s WHERE s.run_id = run.id) > run.progress THEN 0 ELSE run.crashes END,
       NULL, NULL, run.error,
       run.reason, run.trace, run.created_at, run.started_at, run.ended_at, run.wake_at, run.deadline_at,
       run.detached, run.control, run.paused_by, run.cancelled_by, run.cancel_reason, run.paused_at, run.cancelled_at, run.woken, run.progress
FROM durable_run AS run
WHERE run.parent_id = ?24 AND run.parent_id <> x'' AND run.shard = ?1 AND run.id < ?2 AND run.id >= ?23
  AND (?12 = '' OR EXISTS (
      SELECT 1 FROM durable_tag AS tag
      WHERE tag.shard = run.shard AND tag.run_id = run.id AND tag.key = ?12 AND (?13 = '' OR tag.value = ?13)
  ))
  AND (?15 = '' OR EXISTS (
      SELECT 1 FROM durable_place AS place
      WHERE place.shard = run.shard AND place.run_id = run.id AND place.queue = ?5 AND place.key = ?15 AND place.state > 0
  ))
  AND (?16 = '' OR run.failed_step IS NOT NULL AND run.workflow = ?16 AND run.failed_step = ?17 AND run.failed_type = ?18)
  AND (?4 = '' OR run.workflow = ?4)
  AND (?5 = '' OR run.queue = ?5)
  AND (?6 = 0 OR (?6 >> run.status) & 1)
  AND (?14 = 0 OR (?14 >> run.priority + 31) & 1)
  AND (?7 IS NULL OR run.created_at > ?7)
  AND (?8 IS NULL OR run.created_at < ?8)
  AND (?9 = 0 OR run.parent_id = x'')
  AND (?19 = '' OR +run.version = ?19)
  AND (?20 IS NULL OR +run.owner = ?20)
  AND (?21 IS NULL OR +run.ended_at > ?21)
  AND (?22 IS NULL OR +run.ended_at < ?22)
  AND +run.name >= ?10 AND +run.name < coalesce(?11, x'')
ORDER BY run.id DESC
LIMIT ?3 + 0;
