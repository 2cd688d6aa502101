-- Reports whether an admission has something to do: a run has departed or is due without a place, or a key is to be looked
-- at, or the time of a run is over that was admitted at ?3 or before and is not claimed; whether a run is admitted that was
-- never executed; and whether there are runs in each line: of runs that have begun, of children, and of roots.
SELECT EXISTS (SELECT 1 FROM durable_run
               WHERE queue = ?1 AND lane & 3 > 0 AND (status >= 5 OR lane & 3 > 1 AND status IN (3, 4)))
           OR EXISTS (SELECT 1 FROM durable_run WHERE queue = ?1 AND lane & 1 = 1 AND wake_at IS NOT NULL AND wake_at <= ?2)
           OR EXISTS (SELECT 1 FROM durable_queue_key WHERE queue = ?1 AND check_at IS NOT NULL AND check_at <= ?2)
           OR EXISTS (SELECT 1 FROM durable_run AS r
                      WHERE r.queue = ?1 AND r.lane & 7 = 2 AND r.status = 1 AND r.wake_at <= ?3
                        AND (r.deadline_at <= ?2 OR r.control & 8 <> 0 AND EXISTS (
                            SELECT 1 FROM durable_place AS p WHERE p.shard = r.shard AND p.run_id = r.id AND p.start_by <= ?2))),
       EXISTS (SELECT 1 FROM durable_run WHERE queue = ?1 AND lane & 7 = 2 AND status = 1 AND (started_at IS NULL OR control & 8 <> 0)),
       EXISTS (SELECT 1 FROM durable_place WHERE queue = ?1 AND state = 2 AND begun = 1),
       EXISTS (SELECT 1 FROM durable_place WHERE queue = ?1 AND state = 2 AND begun = 0 AND root = 0),
       EXISTS (SELECT 1 FROM durable_place WHERE queue = ?1 AND state = 2 AND begun = 0 AND root = 1);
