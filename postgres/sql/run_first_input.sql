-- Returns the hash of the input with which a run was started, or NULL if the run has not continued as new.
SELECT r.first_input
FROM durable.run AS r
WHERE r.shard = $1::smallint AND r.id = $2::uuid;
