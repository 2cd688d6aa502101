-- Returns the versions of the workflows $1, and when a version of any workflow arrived last. The other columns of the only row are
-- NULL if these workflows have no versions.
SELECT latest.at, v.workflow, v.version, v.queue, v.first_seen_at, v.seen_at
FROM (SELECT max(a.arrived_at) AS at FROM durable.version AS a) AS latest
LEFT JOIN durable.version AS v ON v.workflow = ANY ($1::text[]);
