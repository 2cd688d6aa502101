-- Durable when it returns: WAL with synchronous=FULL syncs the log here.
COMMIT;
