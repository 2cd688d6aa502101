-- Makes the runs of a dead worker due now. They stay running (2) at the old epoch, so that the next claim knows that the
-- lease was lost.
UPDATE durable_run
SET wake_at = ?1
WHERE owner = ?2 AND status = 2 AND wake_at > ?1;
