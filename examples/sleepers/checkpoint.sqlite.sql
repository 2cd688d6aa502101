-- Moves the log into the file and empties it, so that nothing is counted twice.
PRAGMA wal_checkpoint(TRUNCATE);
