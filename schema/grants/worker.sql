-- A worker executes runs. It may do everything that an Engine does, except apply migrations.
GRANT USAGE ON SCHEMA durable TO durable_worker;
GRANT SELECT ON durable.migration, durable.secret TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.run, durable.step, durable.signal TO durable_worker; -- deletions are for retention and Engine.Delete
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.worker, durable.tag TO durable_worker;
GRANT SELECT, INSERT, DELETE ON durable.event TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.step_limit, durable.limit_key, durable.permit TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.queue, durable.queue_key, durable.place TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.schedule, durable.fire, durable.fired TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.fold TO durable_worker;
GRANT SELECT, INSERT, DELETE ON durable.generation TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.version TO durable_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON durable.divergence, durable.repair_pause TO durable_worker;
