-- A starter starts runs, with tags, and waits for their results: a web server, say, whose runs are executed
-- elsewhere. Its inserts find out whether a run is there, so it reads runs too.
GRANT USAGE ON SCHEMA durable TO durable_starter;
GRANT SELECT ON durable.migration TO durable_starter;
GRANT SELECT, INSERT ON durable.run, durable.tag TO durable_starter;
-- What has become of a run tells how many checkpoints it has, but not which.
GRANT SELECT (shard, run_id, status) ON durable.step TO durable_starter;
