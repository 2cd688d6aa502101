-- Moves the WAL into the file, so that each measurement begins with an empty WAL.
PRAGMA wal_checkpoint(TRUNCATE);
