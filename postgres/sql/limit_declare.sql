-- Records the bounds that code of version $7 declares. They apply unless an operator has set others. A version
-- that declared the limit before a newer one did changes nothing, as long as it is one of the latest 64 of them. Neither does a worker of the
-- same version that did not start ($9) after the one that has declared the limit, unless that one started after $8, the present: the
-- clock was set back since. $10 is the timeline of the database.
INSERT INTO durable.step_limit AS l (name, concurrent, rate, period_us, burst, declared, declared_version, declared_at, declarer_started_at, timeline)
VALUES ($1::text, $2::integer, $3::integer, $4::bigint, $5::integer, $6::text, $7::text, $8::timestamptz, $9::timestamptz, $10::text)
ON CONFLICT (name) DO UPDATE
SET concurrent = CASE WHEN l.chosen IS NULL THEN excluded.concurrent ELSE l.concurrent END,
    rate = CASE WHEN l.chosen IS NULL THEN excluded.rate ELSE l.rate END,
    period_us = CASE WHEN l.chosen IS NULL THEN excluded.period_us ELSE l.period_us END,
    burst = CASE WHEN l.chosen IS NULL THEN excluded.burst ELSE l.burst END,
    older_versions = CASE WHEN l.declared_version IS NULL OR l.declared_version = excluded.declared_version THEN l.older_versions
                          ELSE trim_array(array_prepend(l.declared_version, l.older_versions), greatest(cardinality(l.older_versions) - 63, 0)) END,
    declared = excluded.declared, declared_version = excluded.declared_version, declared_at = excluded.declared_at,
    declarer_started_at = excluded.declarer_started_at
WHERE CASE WHEN l.declared_version = excluded.declared_version
           THEN l.declarer_started_at < excluded.declarer_started_at OR l.declarer_started_at > excluded.declared_at
           ELSE NOT excluded.declared_version = ANY (l.older_versions) END
  AND (l.declared, l.declared_version) IS DISTINCT FROM (excluded.declared, excluded.declared_version)
RETURNING l.name;
