-- Records a fire. A fire that has started a run (1) stays as it is.
INSERT INTO durable_fire (schedule, at, fired_at, kind, outcome, run_id)
VALUES (?, -- schedule
        ?, -- at
        ?, -- fired_at
        ?, -- kind
        ?, -- outcome
        ?) -- run_id
ON CONFLICT (schedule, at) DO UPDATE
SET fired_at = excluded.fired_at, kind = excluded.kind, outcome = excluded.outcome, run_id = excluded.run_id
WHERE durable_fire.outcome <> 1;
