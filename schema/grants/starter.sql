-- A starter starts runs, with tags, and waits for their results: a web server, say, whose runs are executed
-- elsewhere. Its inserts find out whether a run is there, so it reads runs too.
GRANT USAGE ON SCHEMA durable TO durable_starter;
GRANT SELECT ON durable.migration TO durable_starter;
GRANT SELECT ON durable.run TO durable_starter;
GRANT INSERT (
    shard, id, parent_id, name, workflow, version, queue, status, epoch, owner,
    input, trace, created_at, started_at, wake_at, deadline_at, detached
) ON durable.run TO durable_starter; -- no output: what a run returns is a worker's to say
GRANT SELECT, INSERT ON durable.tag TO durable_starter;
-- What has become of a run tells how many checkpoints it has, but not which.
GRANT SELECT (shard, run_id, status) ON durable.step TO durable_starter;
