-- Commits. The commit is durable when the statement returns: in WAL mode with synchronous=FULL, SQLite syncs the log here.
COMMIT;
