-- Selects the runs that a claim took, by its worker and nonce, if their leases still end where the claim set them. It
-- recovers a claim whose reply was lost.
SELECT id, epoch
FROM durable_run
WHERE owner = ? AND status = 2 AND wake_at = ? AND (epoch & 4294967295) = ? AND owner IS NOT NULL;
