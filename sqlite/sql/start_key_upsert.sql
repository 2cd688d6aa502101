-- Writes the row of one key under which starts fold.
INSERT INTO durable_fold (workflow, key, kind, check_at, after_id, waiting_id, state, input)
VALUES (?, -- workflow
        ?, -- key
        ?, -- kind
        ?, -- check_at
        ?, -- after_id
        ?, -- waiting_id
        CAST(? AS BLOB), -- state
        CAST(? AS BLOB)) -- input
ON CONFLICT (workflow, key, kind) DO UPDATE
SET check_at = excluded.check_at, after_id = excluded.after_id, waiting_id = excluded.waiting_id, state = excluded.state, input = excluded.input;
