-- Undoes whatever the transaction wrote and gives the write lock back.
ROLLBACK;
