-- Reads whether a time has started a run (1), or waits (2).
SELECT 1
FROM durable_fire
WHERE schedule = ? AND at = ? AND outcome IN (1, 2);
