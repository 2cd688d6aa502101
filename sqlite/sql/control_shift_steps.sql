-- Moves what a paused run waits for by as long as it was paused: sleeps (3), attempts, and
-- the ends of receives, unless they were over when it was paused (?2).
--
-- A run learns of a pause a moment later, and a sleep may be over by then: it stays as it is if a later call
-- of the run began when its time had come. A compensation (8) is no such call, since it is executed when the
-- run's function has returned. The latest start of all is looked at first: most sleeps end after it.
UPDATE durable_step AS waiting
SET next_at = next_at + (?1 - ?2)
WHERE shard = ?3 AND run_id = ?4 AND next_at > ?2
  AND (status < 3 OR kind = 3 AND NOT (
      next_at <= (SELECT max(started_at) FROM durable_step WHERE shard = ?3 AND run_id = ?4)
      AND EXISTS (
          SELECT 1 FROM durable_step AS later
          WHERE later.shard = ?3 AND later.run_id = ?4 AND later.seq > waiting.seq AND later.kind <> 8
            AND later.started_at >= waiting.next_at
      )));
