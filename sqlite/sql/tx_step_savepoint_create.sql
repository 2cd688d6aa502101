-- Creates a savepoint in the transaction of a Tx step. The savepoint is gone if the transaction has ended.
SAVEPOINT durable_whole;
