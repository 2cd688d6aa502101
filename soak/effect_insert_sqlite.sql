-- The write of one transactional step.
INSERT INTO soak_effect (run, step, value) VALUES (?, ?, ?)
