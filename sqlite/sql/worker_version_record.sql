-- Records a report of the version ?3 at ?5, for the workflow ?1 and the queue ?4. ?2 tells when a worker knows the version to
-- have been first seen; NULL: it does not know. A new version is later than all that are recorded. A version that had no sign of
-- life since ?6 has arrived again.
INSERT INTO durable_version (workflow, version, queue, first_seen_at, seen_at, arrived_at)
SELECT ?1, ?3, ?4,
       coalesce(?2, (SELECT min(first_seen_at) FROM durable_version WHERE workflow = ?1 AND version = ?3), arrival.at), ?5, arrival.at
FROM (SELECT max(?5, coalesce((SELECT max(arrived_at) FROM durable_version) + 1, 0)) AS at) AS arrival
WHERE true
ON CONFLICT (workflow, version, queue) DO UPDATE
SET first_seen_at = min(first_seen_at, excluded.first_seen_at), seen_at = max(seen_at, excluded.seen_at),
    arrived_at = CASE WHEN seen_at < ?6 THEN excluded.arrived_at ELSE arrived_at END;
