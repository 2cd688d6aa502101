-- Records the settings that code of a version declares. They apply unless an operator has set others. A version that
-- declared the queue before a newer one did changes nothing, as long as it is one of the latest 64 of them, unless the queue was
-- deleted since.
INSERT INTO durable_queue (name, declared, declared_version, declared_at, now_at)
VALUES (?1, ?2, ?3, ?4, ?4)
ON CONFLICT (name) DO UPDATE
SET older_versions = CASE WHEN declared_version IS NULL OR declared_version = excluded.declared_version THEN older_versions
                          WHEN json_array_length(older_versions) < 64 THEN json_insert(older_versions, '$[#]', declared_version)
                          ELSE json_insert(json_remove(older_versions, '$[0]'), '$[#]', declared_version) END,
    declared = excluded.declared, declared_version = excluded.declared_version, declared_at = excluded.declared_at, deleted = 0
WHERE deleted
   OR NOT EXISTS (SELECT 1 FROM json_each(older_versions) WHERE value = excluded.declared_version)
      AND (declared, declared_version) IS NOT (excluded.declared, excluded.declared_version);
