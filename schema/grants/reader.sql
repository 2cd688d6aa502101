-- A reader reads everything except the key that signs tokens, and changes nothing.
GRANT USAGE ON SCHEMA durable TO durable_reader;
GRANT SELECT ON durable.migration, durable.run, durable.step, durable.signal, durable.tag, durable.event, durable.worker, durable.schedule, durable.fire,
    durable.fired, durable.step_limit, durable.limit_key, durable.permit, durable.queue, durable.queue_key, durable.place TO durable_reader;
GRANT SELECT ON durable.runs, durable.steps, durable.signals, durable.events, durable.schedules, durable.fires, durable.permits, durable.queues, durable.places TO durable_reader;
GRANT SELECT ON durable.fold, durable.folds, durable.version TO durable_reader;
GRANT SELECT ON durable.divergence, durable.repair_pause, durable.generation, durable.generations TO durable_reader;
GRANT SELECT ON durable.shapes, durable.edges, durable.nodes TO durable_reader;
