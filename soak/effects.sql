-- Returns all rows that transactions wrote.
SELECT run, step, value FROM soak_effect
