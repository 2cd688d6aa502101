-- Has all keys of a queue looked at that runs wait behind, because the settings have changed.
UPDATE durable_queue_key
SET check_at = ?
WHERE queue = ? AND behind > 0;
