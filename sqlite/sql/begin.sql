-- Begins a transaction and takes the write lock at once. If a transaction read first and wrote later,
-- SQLite would refuse it with SQLITE_BUSY instead of waiting.
BEGIN IMMEDIATE;
