-- Records a run as the superseded generation ?3.
INSERT INTO durable_generation (
    shard, run_id, number, archive_id, request, status, control, priority, epoch, verb, actor, reason, from_step, at,
    created_at, started_at, ended_at, deadline_at, paused_at, cancelled_at, workflow, queue, version, trace,
    run_reason, paused_by, cancelled_by, cancel_reason, input, output, error, detail
)
SELECT shard, id, ?3, ?4, ?5, CASE WHEN status < 5 THEN 10 ELSE status END, control, priority, epoch, ?7, ?8, ?9, ?10, ?6,
       created_at, started_at, ended_at, deadline_at, paused_at, cancelled_at, workflow, queue, version, trace,
       reason, paused_by, cancelled_by, cancel_reason, input, output, error, CAST(?11 AS BLOB)
FROM durable_run
WHERE shard = ?1 AND id = ?2;
