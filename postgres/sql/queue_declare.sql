-- Records the settings that code of version $3 declares. They apply unless an operator has set others. A version
-- that declared the queue before a newer one did changes nothing, as long as it is one of the latest 64 of them, unless the queue was
-- deleted since.
INSERT INTO durable.queue AS q (name, declared, declared_version, declared_at, now_at)
VALUES ($1::text, $2::text, $3::text, $4::timestamptz, $4::timestamptz)
ON CONFLICT (name) DO UPDATE
SET older_versions = CASE WHEN q.declared_version IS NULL OR q.declared_version = excluded.declared_version THEN q.older_versions
                          ELSE trim_array(array_prepend(q.declared_version, q.older_versions), greatest(cardinality(q.older_versions) - 63, 0)) END,
    declared = excluded.declared, declared_version = excluded.declared_version, declared_at = excluded.declared_at, deleted = false
WHERE q.deleted
   OR NOT excluded.declared_version = ANY (q.older_versions)
      AND (q.declared, q.declared_version) IS DISTINCT FROM (excluded.declared, excluded.declared_version)
RETURNING q.name;
