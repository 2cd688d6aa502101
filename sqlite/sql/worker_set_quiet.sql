-- Makes a worker quiet, or resumes it. A worker that is in this state already keeps what was recorded.
UPDATE durable_worker
SET last_change = CASE WHEN quiet = ?2 THEN last_change ELSE ?3 END, quiet = ?2
WHERE id = ?1;
