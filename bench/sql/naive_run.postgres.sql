-- Inserts a run of the naive design, in the transaction of its first step.
INSERT INTO bench.naive_run (id, status) VALUES ($1, 'running');
