-- Returns the workers' transactions that write steps at this moment. If $1 is not empty, it returns only
-- those of $1 that still do. A statement that writes locks its table before it takes its snapshot, until
-- its transaction ends. So a transaction that is not returned has ended, or sees everything that was
-- committed before this statement.
--
-- A transaction that writes steps as a worker holds the mark of shared_writer_lock_session.sql or shared_writer_lock_tx.sql. Others,
-- such as a DELETE of old rows, or a user's transaction with a Tx step, which its own locks fence, are
-- left out. If this transaction does not see its own mark, the database does not show such locks, and all
-- transactions are returned. Prepared transactions, which have no session, are always returned. NULL is returned if
-- this transaction does not even see itself, so that nothing is known of the others.
WITH lock AS MATERIALIZED (
    SELECT l.locktype, l.pid, l.virtualtransaction
    FROM pg_locks AS l
    WHERE l.granted AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND (l.locktype = 'relation' AND l.relation = 'durable.step'::regclass AND l.mode = 'RowExclusiveLock'
           OR l.locktype = 'advisory' AND l.classid = 7081 AND l.objid = 1 AND l.objsubid = 2)
       OR l.locktype = 'virtualxid' AND l.pid = pg_backend_pid()
), writer AS MATERIALIZED (
    SELECT lock.pid FROM lock WHERE lock.locktype = 'advisory'
)
SELECT NULL::text AS virtualtransaction
WHERE NOT EXISTS (SELECT FROM lock WHERE lock.locktype = 'virtualxid')
UNION ALL
SELECT DISTINCT l.virtualtransaction
FROM lock AS l
WHERE l.locktype = 'relation'
  AND (l.pid IS NULL OR l.pid IN (SELECT writer.pid FROM writer)
       OR NOT EXISTS (SELECT FROM writer WHERE writer.pid = pg_backend_pid()))
  AND (cardinality($1::text[]) = 0 OR l.virtualtransaction = ANY ($1::text[]));
