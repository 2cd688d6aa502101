-- Repairs: the generations of runs that were superseded.

-- See 0001_core.sql.
SET LOCAL search_path = pg_catalog, pg_temp;

-- A repair, such as a retry, moves what is over to this table: row n is generation n of the run, and verb, actor,
-- reason and from_step tell how generation n + 1 came to be. The row in table run keeps its ID and is always the
-- newest generation. The checkpoints of row n have archive_id as their run_id, and so have the children that belong
-- to that generation only, as their parent_id.
CREATE TABLE durable.generation (
    at           timestamptz NOT NULL,   -- when it was superseded
    created_at   timestamptz NOT NULL,   -- of the run
    started_at   timestamptz,
    ended_at     timestamptz,
    deadline_at  timestamptz,
    paused_at    timestamptz,
    cancelled_at timestamptz,
    epoch        bigint   NOT NULL,
    number       integer  NOT NULL,      -- from 1
    shard        smallint NOT NULL,
    status       smallint NOT NULL,      -- with which it ended; 10: it had not ended
    control      smallint NOT NULL,
    priority     smallint NOT NULL,
    run_id       uuid     NOT NULL,
    archive_id   uuid     NOT NULL,
    request      uuid     NOT NULL,      -- of the repair, which can be repeated if its answer was lost
    verb         text COLLATE "C" NOT NULL,
    actor        text,
    reason       text,
    from_step    text COLLATE "C",
    workflow     text COLLATE "C" NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    version      text COLLATE "C" NOT NULL,
    trace        text COLLATE "C" NOT NULL,
    run_reason   text,                   -- why the run was paused
    paused_by    text COLLATE "C",
    cancelled_by text COLLATE "C",
    cancel_reason text,
    input        bytea,
    output       bytea,
    error        bytea,
    detail       bytea,                  -- JSON: what the repair changed
    PRIMARY KEY (shard, run_id, number)
);

-- The checkpoints and children of a generation lead to it by its archive_id.
CREATE INDEX generation_archive ON durable.generation (archive_id);

-- Of a run that has continued as new: the SHA-256 hash of the input with which it was started, with which a repeated start is compared.
-- It is here, because a role that starts runs may not read checkpoints. NULL: the run has not continued as new.
ALTER TABLE durable.run ADD COLUMN first_input bytea;

DROP VIEW durable.runs;

-- The children of a superseded generation are shown as children of the run. A UNION in place of an outer join lets a query by parent_id
-- use the indexes of both tables.
CREATE VIEW durable.runs AS
SELECT id, name, parent AS parent_id, workflow, queue,
       (ARRAY['pending','running','waiting','paused','completed','failed','cancelled',NULL,'expired'])[status] AS status,
       (epoch OPERATOR(pg_catalog.>>) 32)::integer AS epoch, crashes, owner, reason, version,
       durable.payload_json(input) AS input,
       durable.payload_json(output) AS output,
       durable.payload_json(error) AS error,
       created_at, started_at, ended_at, wake_at, deadline_at, shard,
       (control OPERATOR(pg_catalog.&) 1) OPERATOR(pg_catalog.<>) 0 AS paused,
       (control OPERATOR(pg_catalog.&) 2) OPERATOR(pg_catalog.<>) 0 AS paused_with_parent,
       (control OPERATOR(pg_catalog.&) 4) OPERATOR(pg_catalog.<>) 0 AS cancel_requested,
       paused_at, paused_by, cancelled_at, cancelled_by, cancel_reason, detached, lost_at, lost_by,
       -- Of a child: the call that started it, with its scope. Column name has the stored form, which is
       -- no address
       CASE WHEN parent_id IS NOT NULL THEN replace(replace(replace(name, '%', '%25'), '/', '%2F'), chr(31), '/') END AS step,
       priority, parent_generation
FROM (
    SELECT r.*, r.parent_id AS parent, NULL::integer AS parent_generation
    FROM durable.run AS r
    WHERE r.shard OPERATOR(pg_catalog.=) ANY (durable.all_shards()) AND NOT EXISTS (
        SELECT FROM durable.generation AS g
        WHERE g.archive_id OPERATOR(pg_catalog.=) r.parent_id AND g.shard OPERATOR(pg_catalog.=) r.shard
    )
    UNION ALL
    SELECT r.*, g.run_id, g.number
    FROM durable.run AS r
    JOIN durable.generation AS g ON g.archive_id OPERATOR(pg_catalog.=) r.parent_id AND g.shard OPERATOR(pg_catalog.=) r.shard
    WHERE r.shard OPERATOR(pg_catalog.=) ANY (durable.all_shards()) AND g.shard OPERATOR(pg_catalog.=) ANY (durable.all_shards())
) AS run;

CREATE VIEW durable.generations AS
SELECT run_id, number, archive_id,
       (ARRAY['pending','running','waiting','paused','completed','failed','cancelled',NULL,'expired','superseded'])[status] AS status,
       durable.payload_json(input) AS input,
       durable.payload_json(output) AS output,
       durable.payload_json(error) AS error,
       ended_at, at AS superseded_at, verb AS superseded_by, actor, reason, from_step,
       convert_from(detail, 'UTF8')::json AS detail, workflow, queue, version, shard
FROM durable.generation
WHERE shard OPERATOR(pg_catalog.=) ANY (durable.all_shards());

-- A version of the code whose calls do not fit the history of a run. The run is held (see run.control, 16): it is paused until a
-- resume, or until a worker of a version that is not listed here claims it. Then its row in table run lists these versions too. The rows are
-- deleted when the run has ended, or after a resume.
CREATE TABLE durable.divergence (
    at      timestamptz NOT NULL,
    shard   smallint NOT NULL,
    run_id  uuid     NOT NULL,
    version text COLLATE "C" NOT NULL,  -- empty: unknown
    call    text COLLATE "C" NOT NULL,  -- as people see it; empty: the workflow function itself
    detail  text NOT NULL,              -- what is recorded, and what the code asks for
    continued_by text COLLATE "C",      -- the version that claimed the held run afterwards; NULL: none
    PRIMARY KEY (shard, run_id, version)
);

-- The versions that diverged before another one continued the run, separated by U+001F; they are part of the lane. NULL: none.
ALTER TABLE durable.run ADD COLUMN diverged text COLLATE "C";

-- Until when the pause of a live run for its repair (see run.control, 32) lasts. The process that repairs the run extends it. If that
-- process has died, a worker resumes the run, and deletes the row. A row may remain for a while after its repair.
CREATE TABLE durable.repair_pause (
    expires_at timestamptz NOT NULL,
    shard      smallint NOT NULL,
    run_id     uuid     NOT NULL,
    PRIMARY KEY (shard, run_id)
);

INSERT INTO durable.migration (version, name) VALUES (4, '0004_repair.sql');
