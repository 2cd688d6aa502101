-- Reports whether an admission has something to do: a run has departed or is due without a place, or a key is to be looked
-- at; and whether there are runs in each line: of runs that have begun, of children, and of roots.
SELECT EXISTS (SELECT 1 FROM durable_run
               WHERE queue = ?1 AND lane & 3 > 0 AND (status >= 5 OR lane & 3 > 1 AND status IN (3, 4)))
           OR EXISTS (SELECT 1 FROM durable_run WHERE queue = ?1 AND lane & 1 = 1 AND wake_at IS NOT NULL AND wake_at <= ?2)
           OR EXISTS (SELECT 1 FROM durable_queue_key WHERE queue = ?1 AND look_at IS NOT NULL AND look_at <= ?2),
       EXISTS (SELECT 1 FROM durable_place WHERE queue = ?1 AND state = 2 AND begun = 1),
       EXISTS (SELECT 1 FROM durable_place WHERE queue = ?1 AND state = 2 AND begun = 0 AND root = 0),
       EXISTS (SELECT 1 FROM durable_place WHERE queue = ?1 AND state = 2 AND begun = 0 AND root = 1);
