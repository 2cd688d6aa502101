-- Switches the file to the write-ahead log permanently, and returns the journal mode.
PRAGMA journal_mode = WAL;
