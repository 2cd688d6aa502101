-- Makes a gone worker's runs claimable now. They stay running (2) under the old
-- epoch until the claim, which thereby knows that it follows a lost lease.
UPDATE durable_run
SET wake_at = ?1
WHERE owner = ?2 AND status = 2 AND wake_at > ?1;
