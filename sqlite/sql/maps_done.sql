-- How many items of a Map have their outcome. An item's name is the Map's, the separator
-- of scopes (x'1f'), and its own; one more separator leads into an item.
SELECT count(*)
FROM durable_step
WHERE shard = ? AND run_id = ?
  AND name > ? -- the Map's, and the separator: so many bytes, next but one
  AND name < ? -- the Map's, and the character after the separator
  AND status >= 3 AND instr(substr(CAST(name AS BLOB), ? + 1), x'1f') = 0;
