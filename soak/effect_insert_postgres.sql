-- Writes the row of a transactional step.
INSERT INTO soak_effect (run, step, value) VALUES ($1, $2, $3)
