-- Returns the rows that belong to no run: a deletion has left them, or a write came after it.
WITH known AS (
  SELECT id FROM durable.run
  UNION ALL
  SELECT archive_id FROM durable.generation
), left_over AS (
  SELECT 'step' AS what, run_id FROM durable.step
  UNION ALL SELECT 'signal', run_id FROM durable.signal
  UNION ALL SELECT 'tag', run_id FROM durable.tag
  UNION ALL SELECT 'permit', run_id FROM durable.permit
  UNION ALL SELECT 'place', run_id FROM durable.place
  UNION ALL SELECT 'divergence', run_id FROM durable.divergence
  UNION ALL SELECT 'generation', run_id FROM durable.generation
)
SELECT format('%s %s of run %s', count(*), what, run_id) FROM left_over WHERE run_id NOT IN (SELECT id FROM known) GROUP BY what, run_id
