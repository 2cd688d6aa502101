-- Writes the counts of keys of a locked queue.
INSERT INTO durable.queue_key AS k (queue, key, paid_at, look_at, turns, levels, executing, open, lined, lined_begun, lined_children, behind)
SELECT $1::text, item.key, item.paid_at, item.look_at, ARRAY[item.turn1, item.turn2, item.turn3, item.turn4, item.turn5],
       ARRAY[item.level1, item.level2, item.level3, item.level4, item.level5],
       item.executing, item.open, item.lined, item.lined_begun, item.lined_children, item.behind
FROM unnest(
    $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
    $15::integer[], $16::integer[], $17::integer[], $18::integer[], $19::integer[], $20::integer[]
) AS item(key, paid_at, look_at, turn1, turn2, turn3, turn4, turn5, level1, level2, level3, level4, level5,
          executing, open, lined, lined_begun, lined_children, behind)
ORDER BY item.key
ON CONFLICT (queue, key) DO UPDATE
SET paid_at = excluded.paid_at, look_at = excluded.look_at, turns = excluded.turns, levels = excluded.levels,
    executing = excluded.executing, open = excluded.open,
    lined = excluded.lined, lined_begun = excluded.lined_begun, lined_children = excluded.lined_children, behind = excluded.behind
RETURNING k.key;
