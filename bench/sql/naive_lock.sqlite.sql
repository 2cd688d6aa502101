-- The naive design looks at its run; the whole file is locked already.
SELECT status FROM naive_run WHERE id = ?;
