-- Returns the queues and keys whose counts differ from their places, and the places that differ from the admission state of their run.
WITH counted AS (
  SELECT queue, key,
    count(*) FILTER (WHERE state = 4) AS executing,
    count(*) FILTER (WHERE state > 0 AND root AND begun) AS open,
    count(*) FILTER (WHERE state = 2) AS in_line,
    count(*) FILTER (WHERE state = 2 AND begun) AS in_line_begun,
    count(*) FILTER (WHERE state = 2 AND NOT begun AND NOT root) AS in_line_children,
    ARRAY[count(*) FILTER (WHERE state = 2 AND priority = -2)::bigint,
      count(*) FILTER (WHERE state = 2 AND priority = -1)::bigint,
      count(*) FILTER (WHERE state = 2 AND priority = 0)::bigint,
      count(*) FILTER (WHERE state = 2 AND priority = 1)::bigint,
      count(*) FILTER (WHERE state = 2 AND priority = 2)::bigint] AS in_line_by_priority,
    count(*) FILTER (WHERE state = 3) AS behind
  FROM durable.place
  GROUP BY queue, key
), whole AS (
  SELECT queue, sum(executing) AS executing, sum(open) AS open, sum(in_line + behind) AS waiting FROM counted GROUP BY queue
)
SELECT format('queue %s counts %s executing, %s open, %s waiting, and its places are %s, %s, %s', q.name, q.executing, q.open, q.waiting, w.executing, w.open, w.waiting)
FROM durable.queue AS q LEFT JOIN whole AS w ON w.queue = q.name
WHERE (q.executing, q.open, q.waiting) IS DISTINCT FROM (coalesce(w.executing, 0), coalesce(w.open, 0), coalesce(w.waiting, 0))
UNION ALL
SELECT format('key %s of queue %s counts %s, and its places are %s', coalesce(k.key, c.key), coalesce(k.queue, c.queue),
  (k.executing, k.open, k.in_line, k.in_line_begun, k.in_line_children, k.in_line_by_priority, k.behind), (c.executing, c.open, c.in_line, c.in_line_begun, c.in_line_children, c.in_line_by_priority, c.behind))
FROM durable.queue_key AS k FULL JOIN counted AS c ON c.queue = k.queue AND c.key = k.key
WHERE (coalesce(k.executing, 0), coalesce(k.open, 0), coalesce(k.in_line, 0), coalesce(k.in_line_begun, 0), coalesce(k.in_line_children, 0), coalesce(k.in_line_by_priority, '{0,0,0,0,0}'), coalesce(k.behind, 0))
  IS DISTINCT FROM (coalesce(c.executing, 0), coalesce(c.open, 0), coalesce(c.in_line, 0), coalesce(c.in_line_begun, 0), coalesce(c.in_line_children, 0), coalesce(c.in_line_by_priority, '{0,0,0,0,0}'), coalesce(c.behind, 0))
UNION ALL
SELECT format('run %s has a place in state %s of queue %s, and admission state %s', p.run_id, p.state, p.queue, r.lane & 7)
FROM durable.place AS p JOIN durable.queue AS q ON q.name = p.queue JOIN durable.run AS r ON r.shard = p.shard AND r.id = p.run_id
WHERE p.state > 0 AND NOT (p.state = 1 AND r.lane & 3 = 0) AND (r.lane & 3 <> (ARRAY[1, 3, 3, 2, 2])[p.state] OR p.state = 5 AND r.lane & 4 = 0)
