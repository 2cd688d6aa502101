-- Deletes the row of a locked queue that is marked as deleted, with its keys, if no run waits for a place in it or has one. Runs
-- that wait for their start keys in the lane $2 keep their places; see store.UnreleasedLane.
WITH gone AS (
    DELETE FROM durable.queue AS q
    WHERE q.name = $1::text AND q.deleted
      AND NOT EXISTS (
          SELECT FROM durable.place AS p
          CROSS JOIN LATERAL (
              SELECT FROM durable.run AS r WHERE r.shard = p.shard AND r.id = p.run_id AND r.lane & 3 > 0 AND r.lane <> $2::bigint OFFSET 0
          ) AS r
          WHERE p.queue = $1::text AND p.state > 0)
    RETURNING q.name
)
DELETE FROM durable.queue_key AS k
USING gone
WHERE k.queue = gone.name;
