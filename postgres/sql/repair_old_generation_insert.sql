-- Records a run, which is locked, as the superseded generation $3. It returns the number.
INSERT INTO durable.generation (
    at, created_at, started_at, ended_at, deadline_at, paused_at, cancelled_at, epoch, number, shard, status, control, priority,
    run_id, archive_id, request, verb, actor, reason, from_step, workflow, queue, version, trace,
    run_reason, paused_by, cancelled_by, cancel_reason, input, output, error, detail
)
SELECT $6::timestamptz, r.created_at, r.started_at, r.ended_at, r.deadline_at, r.paused_at, r.cancelled_at, r.epoch, $3::integer, r.shard,
       CASE WHEN r.status < 5 THEN 10 ELSE r.status END, r.control, r.priority,
       r.id, $4::uuid, $5::uuid, $7::text, $8::text, $9::text, $10::text, r.workflow, r.queue, r.version, r.trace,
       r.reason, r.paused_by, r.cancelled_by, r.cancel_reason, r.input, r.output, r.error, $11::bytea
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid
RETURNING number;
