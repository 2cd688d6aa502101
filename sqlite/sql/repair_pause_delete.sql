-- Deletes what is recorded of the pause of a run for its repair, unless the pause was extended beyond a time.
DELETE FROM durable_repair_pause WHERE run_id = ? AND expires_at <= ?;
