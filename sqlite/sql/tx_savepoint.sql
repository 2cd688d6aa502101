-- Marks the transaction of a Tx step: the mark is gone if the transaction is.
SAVEPOINT durable_whole;
