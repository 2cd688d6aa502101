-- Returns which of these queues and workflows are executed by a live worker that claims new runs. A worker
-- whose workflows are not recorded may execute any, and one without queues takes runs from all of them.
WITH live AS MATERIALIZED (
    SELECT w.queues, w.workflows
    FROM durable.worker AS w
    WHERE w.state = 1 AND NOT w.quiet AND w.silent_at > clock_timestamp()
)
SELECT item.ordinal
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS item(queue, workflow, ordinal)
WHERE EXISTS (
    SELECT 1 FROM live
    WHERE (live.workflows IS NULL OR item.workflow = ANY (live.workflows))
      AND (live.queues IS NULL OR item.queue = ANY (live.queues))
);
