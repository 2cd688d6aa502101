-- Deletes keys of a locked queue that have nothing to count.
DELETE FROM durable.queue_key AS k
WHERE k.queue = $1::text AND k.key = ANY ($2::text[]);
