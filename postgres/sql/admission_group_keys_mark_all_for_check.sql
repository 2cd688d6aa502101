-- Has all keys of a locked queue looked at that runs wait behind, because the settings have changed.
UPDATE durable.queue_key AS k
SET check_at = $2::timestamptz
WHERE k.queue = $1::text AND k.behind > 0;
