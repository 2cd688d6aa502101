-- Takes workers off the registry. SKIP LOCKED, because several processes may find the
-- same workers dead at once.
WITH gone AS MATERIALIZED (
    SELECT id FROM durable.worker
    WHERE id = ANY ($1::uuid[])
    ORDER BY id
    FOR UPDATE SKIP LOCKED
)
DELETE FROM durable.worker AS w
USING gone
WHERE w.id = gone.id;
