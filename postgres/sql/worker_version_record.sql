-- Records a report of the version $3 at $5, for each of the workflows $1 and the queues $4. $2 tells when a worker
-- knows the version to have been first seen; NULL: it does not know. A new version is later than all that are recorded.
-- A version without a report since $6 has arrived again. A row is not written again if its last report is after $7.
INSERT INTO durable.version AS v (first_seen_at, seen_at, arrived_at, workflow, version, queue)
SELECT coalesce(item.first_seen_at, known.first_seen_at, arrival.at), $5::timestamptz, arrival.at, item.workflow, $3::text, served.queue
FROM (SELECT greatest($5::timestamptz, max(other.arrived_at) + interval '1 microsecond') AS at FROM durable.version AS other) AS arrival
CROSS JOIN unnest($1::text[], $2::timestamptz[]) AS item(workflow, first_seen_at)
CROSS JOIN unnest($4::text[]) AS served(queue)
LEFT JOIN (
    SELECT same.workflow, min(same.first_seen_at) AS first_seen_at
    FROM durable.version AS same
    WHERE same.version = $3::text
    GROUP BY same.workflow
) AS known ON known.workflow = item.workflow
ORDER BY item.workflow, served.queue
ON CONFLICT (workflow, version, queue) DO UPDATE
SET first_seen_at = least(v.first_seen_at, excluded.first_seen_at), seen_at = greatest(v.seen_at, excluded.seen_at),
    arrived_at = CASE WHEN v.seen_at < $6::timestamptz THEN excluded.arrived_at ELSE v.arrived_at END
WHERE v.seen_at <= $7::timestamptz OR v.first_seen_at > excluded.first_seen_at;
