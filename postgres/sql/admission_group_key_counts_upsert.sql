-- Writes the counts of keys of a locked queue.
INSERT INTO durable.queue_key AS k (queue, key, rate_used_until, check_at, turns, in_line_by_priority, executing, open, in_line, in_line_begun, in_line_children, behind)
SELECT $1::text, item.key, item.rate_used_until, item.check_at, ARRAY[item.turn1, item.turn2, item.turn3, item.turn4, item.turn5],
       ARRAY[item.level1, item.level2, item.level3, item.level4, item.level5],
       item.executing, item.open, item.in_line, item.in_line_begun, item.in_line_children, item.behind
FROM unnest(
    $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
    $15::integer[], $16::integer[], $17::integer[], $18::integer[], $19::integer[], $20::integer[]
) AS item(key, rate_used_until, check_at, turn1, turn2, turn3, turn4, turn5, level1, level2, level3, level4, level5,
          executing, open, in_line, in_line_begun, in_line_children, behind)
ORDER BY item.key
ON CONFLICT (queue, key) DO UPDATE
SET rate_used_until = excluded.rate_used_until, check_at = excluded.check_at, turns = excluded.turns, in_line_by_priority = excluded.in_line_by_priority,
    executing = excluded.executing, open = excluded.open,
    in_line = excluded.in_line, in_line_begun = excluded.in_line_begun, in_line_children = excluded.in_line_children, behind = excluded.behind
RETURNING k.key;
