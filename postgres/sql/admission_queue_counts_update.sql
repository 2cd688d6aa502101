-- Writes the counts of a locked queue.
UPDATE durable.queue AS q
SET applied = $2::text, now_at = $3::timestamptz, rate_used_until = $4::timestamptz, closed_until = $5::timestamptz, timeline = $6::text,
    turns = ARRAY[$7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint],
    waiting = $12::bigint, executing = $13::integer, open = $14::integer
WHERE q.name = $1::text;
