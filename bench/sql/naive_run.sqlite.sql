-- The naive design's run, made in the transaction of its first step.
INSERT INTO naive_run (id, status) VALUES (?, 'running');
