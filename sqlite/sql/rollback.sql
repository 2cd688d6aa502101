-- Rolls back the transaction and releases the write lock.
ROLLBACK;
