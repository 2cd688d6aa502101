-- Takes the write lock at once: a transaction that read first and wrote later
-- would be refused with SQLITE_BUSY instead of waiting.
BEGIN IMMEDIATE;
