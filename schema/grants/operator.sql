-- An operator reads everything, pauses, resumes and cancels runs, gives them other queues and priorities, sends
-- signals, completes tokens, sets tags and sets schedules. It starts no runs by itself and records no steps: a worker
-- fires the schedules that it sets. Of a run it may update the columns that these operations set: a run that it ends
-- has no output, and its input, name, workflow and epoch stay. Of a step it may update the due time and the start,
-- because FreezeTimers moves both. A run that leaves a queue gives its place back, with the counts of its key.
-- The place of a run that is cancelled may be deleted with it.
GRANT USAGE ON SCHEMA durable TO durable_operator;
GRANT SELECT ON durable.migration, durable.secret, durable.worker TO durable_operator;
GRANT UPDATE (quiet, last_change) ON durable.worker TO durable_operator;
GRANT SELECT ON durable.run, durable.step TO durable_operator;
GRANT UPDATE (
    status, control, detached, wake_at, woken, owner, ended_at, error, crashes, deadline_at, timeout,
    reason, paused_by, paused_at, cancel_reason, cancelled_by, cancelled_at, queue, priority, lane
) ON durable.run TO durable_operator;
GRANT UPDATE (next_at, started_at) ON durable.step TO durable_operator;
GRANT SELECT, INSERT ON durable.signal, durable.event TO durable_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.tag TO durable_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.schedule, durable.fire, durable.fired, durable.step_limit TO durable_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.queue TO durable_operator;
GRANT SELECT, INSERT, UPDATE ON durable.queue_key TO durable_operator;
GRANT SELECT, INSERT, DELETE, UPDATE (queue, priority, state, begun, turn, arrived_at) ON durable.place TO durable_operator;
GRANT SELECT ON durable.limit_key, durable.permit TO durable_operator;
GRANT SELECT ON durable.runs, durable.steps, durable.signals, durable.events, durable.schedules, durable.fires, durable.permits, durable.queues, durable.places TO durable_operator;
GRANT SELECT ON durable.fold, durable.folds, durable.version TO durable_operator;
GRANT SELECT ON durable.divergence, durable.repair_pause, durable.generation, durable.generations TO durable_operator;
GRANT SELECT ON durable.shapes, durable.edges, durable.nodes TO durable_operator;
