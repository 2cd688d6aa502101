-- Counts the items of a Map that have an outcome. The name of an item is the name of the Map, the scope separator (x'1f')
-- and its own name. Names with a further separator belong to calls inside of an item.
SELECT count(*)
FROM durable_step
WHERE shard = ? AND run_id = ?
  AND name > ? -- the Map's, and the separator: so many bytes, next but one
  AND name < ? -- the Map's, and the character after the separator
  AND status >= 3 AND instr(substr(CAST(name AS BLOB), ? + 1), x'1f') = 0;
