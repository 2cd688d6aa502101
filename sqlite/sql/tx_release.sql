-- Fails if the transaction of a Tx step was ended by its own function, or by SQLite.
RELEASE durable_whole;
