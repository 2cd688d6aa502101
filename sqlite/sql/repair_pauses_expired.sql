-- Selects the runs whose pause for a repair ended by itself at a time or before. The table has few rows.
SELECT run_id FROM durable_repair_pause AS pause WHERE expires_at <= ? ORDER BY run_id LIMIT ?;
