-- The runs that a claim took, by its worker and nonce, as far as their leases end where it set
-- them. A claim whose answer was lost is found so.
SELECT id, epoch, queue, workflow
FROM durable_run
WHERE owner = ? AND status = 2 AND wake_at = ? AND (epoch & 4294967295) = ? AND owner IS NOT NULL;
