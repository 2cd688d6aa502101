-- Takes the write lock at once.
BEGIN IMMEDIATE;
