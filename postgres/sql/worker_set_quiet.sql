-- Makes a worker quiet, or resumes it. A worker that is in this state already keeps what was recorded.
UPDATE durable.worker AS w
SET last_change = CASE WHEN w.quiet = $2::boolean THEN w.last_change ELSE $3::text END,
    quiet = $2::boolean
WHERE w.id = $1::uuid
RETURNING w.id;
