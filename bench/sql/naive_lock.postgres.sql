-- The naive design locks its run while a step is executed.
SELECT status FROM bench.naive_run WHERE id = $1 FOR UPDATE;
