-- A starter starts runs, with tags, and waits for their results; for example, a web server whose runs are
-- executed elsewhere. Its inserts check whether a run exists, so it reads runs too.
GRANT USAGE ON SCHEMA durable TO durable_starter;
GRANT SELECT ON durable.migration TO durable_starter;
GRANT SELECT ON durable.run TO durable_starter;
GRANT INSERT (
    shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at, timeout, detached, lane, priority, control
) ON durable.run TO durable_starter; -- no output: only a worker sets the result of a run
GRANT SELECT, INSERT ON durable.tag TO durable_starter;
-- A start into a queue with settings records what the run needs there.
GRANT SELECT ON durable.queue TO durable_starter;
GRANT SELECT, INSERT ON durable.place TO durable_starter;
-- The state of a run includes how many checkpoints and children it has, but not which ones.
GRANT SELECT (shard, run_id, kind, status) ON durable.step TO durable_starter;
-- A start that folds locks and changes the row of its key. The runs that it cancels, a worker cancels.
GRANT SELECT, INSERT, UPDATE ON durable.fold TO durable_starter;
