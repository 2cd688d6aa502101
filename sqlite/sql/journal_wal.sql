-- Switches the file to the write-ahead log, for good, and answers the mode it is in.
PRAGMA journal_mode = WAL;
