-- Writes the counts of keys of a locked queue.
INSERT INTO durable.queue_key AS k (queue, key, paid_at, look_at, turns, executing, open, lined, lined_begun, lined_children, behind)
SELECT $1::text, item.key, item.paid_at, item.look_at, ARRAY[item.turn1, item.turn2, item.turn3, item.turn4, item.turn5],
       item.executing, item.open, item.lined, item.lined_begun, item.lined_children, item.behind
FROM unnest(
    $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[], $15::integer[]
) AS item(key, paid_at, look_at, turn1, turn2, turn3, turn4, turn5, executing, open, lined, lined_begun, lined_children, behind)
ORDER BY item.key
ON CONFLICT (queue, key) DO UPDATE
SET paid_at = excluded.paid_at, look_at = excluded.look_at, turns = excluded.turns, executing = excluded.executing, open = excluded.open,
    lined = excluded.lined, lined_begun = excluded.lined_begun, lined_children = excluded.lined_children, behind = excluded.behind
RETURNING k.key;
