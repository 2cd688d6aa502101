-- Makes the signals that the receives $3 of a run have taken wait again.
UPDATE durable.signal AS s
SET step = NULL
WHERE s.shard = $1::smallint AND s.run_id = $2::uuid AND s.step = ANY ($3::text[]);
