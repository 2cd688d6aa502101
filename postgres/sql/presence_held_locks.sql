-- Returns the advisory locks that sessions hold alone, in the order of their keys, as one text, and when the server started. If no key
-- disappears from it, no worker has died whose presence lock (presence_lock.sql) was in it before. It reads no table.
SELECT coalesce(string_agg(l.classid::text || ' ' || l.objid::text, ',' ORDER BY l.classid, l.objid), ''), pg_postmaster_start_time()
FROM pg_locks AS l
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.mode = 'ExclusiveLock' AND l.granted
  AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database());
