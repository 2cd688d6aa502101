-- Moves the log into the file, so that each measurement begins with an empty one.
PRAGMA wal_checkpoint(TRUNCATE);
