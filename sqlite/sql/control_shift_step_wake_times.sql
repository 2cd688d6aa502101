-- Moves the times for which a paused run waits by the duration of the pause: the ends of sleeps
-- (kind 3), the next attempts, the deadlines of receives, and the retry of a run that retries itself
-- (kind 16), unless they had passed before the pause began (?2).
--
-- A run learns of a pause a moment later, and a sleep may have ended by then. Such a sleep is not
-- moved: it has ended if a later call of the run began after the sleep's time had come. A
-- compensation (8) is no such call, because it is executed after the function of the run has
-- returned. The query compares the latest start of all calls first, because most sleeps end after
-- it.
UPDATE durable_step AS waiting
SET next_at = next_at + (?1 - ?2)
WHERE shard = ?3 AND run_id = ?4 AND next_at > ?2
  AND (status < 3 OR kind = 16 OR kind = 3 AND NOT (
      next_at <= (SELECT max(started_at) FROM durable_step WHERE shard = ?3 AND run_id = ?4)
      AND EXISTS (
          SELECT 1 FROM durable_step AS later
          WHERE later.shard = ?3 AND later.run_id = ?4 AND later.seq > waiting.seq AND later.kind <> 8
            AND later.started_at >= waiting.next_at
      )));
