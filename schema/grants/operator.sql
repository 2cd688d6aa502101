-- An operator reads everything, pauses, resumes and cancels runs, sends signals, completes tokens and sets tags.
-- It starts nothing and records no step.
GRANT USAGE ON SCHEMA durable TO durable_operator;
GRANT SELECT ON durable.migration, durable.secret, durable.worker TO durable_operator;
GRANT SELECT, UPDATE ON durable.run, durable.step TO durable_operator;
GRANT SELECT, INSERT ON durable.signal, durable.event TO durable_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.tag TO durable_operator;
GRANT SELECT ON durable.runs, durable.steps, durable.signals, durable.events TO durable_operator;
