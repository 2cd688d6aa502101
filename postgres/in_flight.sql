-- Transactions that write steps at this moment, or those of $1, unless it is empty, that still do.
-- A statement that writes locks its table before it takes its snapshot, until its transaction
-- ends. So what is not named here has committed, or sees all that was committed before this.
SELECT DISTINCT l.virtualtransaction
FROM pg_locks AS l
WHERE l.locktype = 'relation' AND l.relation = 'durable.step'::regclass
  AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
  AND l.mode = 'RowExclusiveLock' AND l.granted
  AND (cardinality($1::text[]) = 0 OR l.virtualtransaction = ANY ($1::text[]));
