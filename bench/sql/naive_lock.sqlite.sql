-- The naive design reads its run. The transaction has already locked the whole file.
SELECT status FROM naive_run WHERE id = ?;
