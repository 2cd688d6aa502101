-- Returns the rows that belong to no run: a deletion has left them, or a write came after it.
WITH known AS (
  SELECT id FROM durable_run
  UNION ALL
  SELECT archive_id FROM durable_generation
), left_over AS (
  SELECT 'step' AS what, run_id FROM durable_step
  UNION ALL SELECT 'signal', run_id FROM durable_signal
  UNION ALL SELECT 'tag', run_id FROM durable_tag
  UNION ALL SELECT 'permit', run_id FROM durable_permit
  UNION ALL SELECT 'place', run_id FROM durable_place
  UNION ALL SELECT 'divergence', run_id FROM durable_divergence
  UNION ALL SELECT 'generation', run_id FROM durable_generation
)
SELECT format('%d %s of run %s', count(*), what, lower(hex(run_id))) FROM left_over WHERE run_id NOT IN (SELECT id FROM known) GROUP BY what, run_id
