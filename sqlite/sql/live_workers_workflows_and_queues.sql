-- Selects what each live worker that takes new runs executes, and from which queues: two JSON arrays of texts, or NULL if the
-- worker does not record its workflows, or takes runs from all queues.
SELECT workflows, queues
FROM durable_worker
WHERE state = 1 AND NOT quiet AND silent_at > ?;
