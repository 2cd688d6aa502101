-- Deletes the oldest events, at most ?2, up to the first one that is not older than ?1. So the events that are left are always the
-- latest ones.
DELETE FROM durable_event
WHERE id < (
    SELECT coalesce(min(CASE WHEN page.at >= ?1 THEN page.id END), max(page.id) + 1)
    FROM (SELECT id, at FROM durable_event ORDER BY id LIMIT ?2 + 0) AS page
);
