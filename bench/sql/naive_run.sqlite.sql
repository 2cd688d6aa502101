-- Inserts a run of the naive design, in the transaction of its first step.
INSERT INTO naive_run (id, status) VALUES (?, 'running');
