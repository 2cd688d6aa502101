-- Releases the savepoint of a Tx step. It fails if the step's function or SQLite has ended the transaction.
RELEASE durable_whole;
