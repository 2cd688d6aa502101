-- Records the bounds that code of a version declares. They apply unless an operator has set others. A version that
-- declared the limit before a newer one did changes nothing, as long as it is one of the latest 64 of them. Neither does a worker of the
-- same version that did not start (?9) after the one that has declared the limit, unless that one started after ?8, the present: the clock
-- was set back since.
INSERT INTO durable_step_limit (name, concurrent, rate, period_us, burst, declared, declared_version, declared_at, declarer_started_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (name) DO UPDATE
SET concurrent = CASE WHEN chosen IS NULL THEN excluded.concurrent ELSE concurrent END,
    rate = CASE WHEN chosen IS NULL THEN excluded.rate ELSE rate END,
    period_us = CASE WHEN chosen IS NULL THEN excluded.period_us ELSE period_us END,
    burst = CASE WHEN chosen IS NULL THEN excluded.burst ELSE burst END,
    older_versions = CASE WHEN declared_version IS NULL OR declared_version = excluded.declared_version THEN older_versions
                          WHEN json_array_length(older_versions) < 64 THEN json_insert(older_versions, '$[#]', declared_version)
                          ELSE json_insert(json_remove(older_versions, '$[0]'), '$[#]', declared_version) END,
    declared = excluded.declared, declared_version = excluded.declared_version, declared_at = excluded.declared_at,
    declarer_started_at = excluded.declarer_started_at
WHERE CASE WHEN declared_version = excluded.declared_version
           THEN declarer_started_at < excluded.declarer_started_at OR declarer_started_at > excluded.declared_at
           ELSE NOT EXISTS (SELECT 1 FROM json_each(older_versions) WHERE value = excluded.declared_version) END
  AND (declared, declared_version) IS NOT (excluded.declared, excluded.declared_version);
