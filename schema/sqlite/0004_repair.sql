-- Repairs: the generations of runs that were superseded. The same as schema/postgres/0004_repair.sql.

-- A repair, such as a retry, moves what is over to this table: row n is generation n of the run, and verb, actor,
-- reason and from_step tell how generation n + 1 came to be. The row in durable_run keeps its ID and is always the
-- newest generation. The checkpoints of row n have archive_id as their run_id, and so have the children that belong
-- to that generation only, as their parent_id.
CREATE TABLE durable_generation (
    shard        INTEGER NOT NULL,
    run_id       BLOB    NOT NULL,
    number       INTEGER NOT NULL,      -- from 1
    archive_id   BLOB    NOT NULL,
    request      BLOB    NOT NULL,      -- of the repair, which can be repeated if its answer was lost
    status       INTEGER NOT NULL,      -- with which it ended; 10: it had not ended
    control      INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    verb         TEXT    NOT NULL,
    actor        TEXT,
    reason       TEXT,
    from_step    TEXT,
    at           INTEGER NOT NULL,      -- when it was superseded
    created_at   INTEGER NOT NULL,      -- of the run
    started_at   INTEGER,
    ended_at     INTEGER,
    deadline_at  INTEGER,
    paused_at    INTEGER,
    cancelled_at INTEGER,
    workflow     TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    trace        TEXT    NOT NULL,
    run_reason   TEXT,                  -- why the run was paused
    paused_by    TEXT,
    cancelled_by TEXT,
    cancel_reason TEXT,
    input        BLOB,
    output       BLOB,
    error        BLOB,
    detail       BLOB,                  -- JSON: what the repair changed
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

-- The checkpoints and children of a generation lead to it by its archive_id.
CREATE INDEX durable_generation_archive ON durable_generation (archive_id);

-- Of a run that has continued as new: the SHA-256 hash of the input with which it was started, with which a repeated start is compared.
-- NULL: the run has not continued as new.
ALTER TABLE durable_run ADD COLUMN first_input BLOB;

DROP VIEW durable_runs;

-- The children of a superseded generation are shown as children of the run.
CREATE VIEW durable_runs AS
SELECT hex(id) AS id, name, hex(coalesce((SELECT g.run_id FROM durable_generation AS g WHERE g.archive_id = parent_id), parent_id)) AS parent_id, workflow, queue,
       CASE status WHEN 1 THEN 'pending' WHEN 2 THEN 'running' WHEN 3 THEN 'waiting' WHEN 4 THEN 'paused'
                   WHEN 5 THEN 'completed' WHEN 6 THEN 'failed' WHEN 7 THEN 'cancelled' WHEN 9 THEN 'expired' END AS status,
       epoch >> 32 AS epoch, crashes, hex(owner) AS owner, reason, version,
       iif(substr(input, 1, 1) = x'c0', json_object('encoded', length(input)), CAST(input AS TEXT)) AS input, iif(substr(output, 1, 1) = x'c0', json_object('encoded', length(output)), CAST(output AS TEXT)) AS output, iif(substr(error, 1, 1) = x'c0', json_object('encoded', length(error)), CAST(error AS TEXT)) AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', wake_at / 1e6, 'unixepoch') AS wake_at, shard,
       (control & 1) <> 0 AS paused, (control & 2) <> 0 AS paused_with_parent, (control & 4) <> 0 AS cancel_requested,
       paused_by, cancelled_by, cancel_reason, detached,
       strftime('%Y-%m-%dT%H:%M:%fZ', lost_at / 1e6, 'unixepoch') AS lost_at, hex(lost_by) AS lost_by,
       -- of a child: the call that started it, with its scope. Column name contains the stored
       -- name, which is not an address
       CASE WHEN parent_id <> x'' THEN replace(replace(replace(name, '%', '%25'), '/', '%2F'), char(31), '/') END AS step,
       priority, (SELECT g.number FROM durable_generation AS g WHERE g.archive_id = parent_id) AS parent_generation, id AS run
FROM durable_run;

CREATE VIEW durable_generations AS
SELECT hex(run_id) AS run_id, number, hex(archive_id) AS archive_id,
       CASE status WHEN 5 THEN 'completed' WHEN 6 THEN 'failed' WHEN 7 THEN 'cancelled' WHEN 9 THEN 'expired' WHEN 10 THEN 'superseded' END AS status,
       iif(substr(input, 1, 1) = x'c0', json_object('encoded', length(input)), CAST(input AS TEXT)) AS input, iif(substr(output, 1, 1) = x'c0', json_object('encoded', length(output)), CAST(output AS TEXT)) AS output, iif(substr(error, 1, 1) = x'c0', json_object('encoded', length(error)), CAST(error AS TEXT)) AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS superseded_at,
       verb AS superseded_by, actor, reason, from_step, CAST(detail AS TEXT) AS detail, workflow, queue, version, run_id AS run
FROM durable_generation;

-- A version of the code whose calls do not fit the history of a run. The run is held (see run.control, 16): it is paused until a
-- resume, or until a worker of a version that is not listed here claims it. Then its row in table run lists these versions too. The rows are
-- deleted when the run has ended, or after a resume.
CREATE TABLE durable_divergence (
    run_id  BLOB    NOT NULL,
    version TEXT    NOT NULL,   -- empty: unknown
    at      INTEGER NOT NULL,
    call    TEXT    NOT NULL,   -- as people see it; empty: the workflow function itself
    detail  TEXT    NOT NULL,   -- what is recorded, and what the code asks for
    continued_by TEXT,          -- the version that claimed the held run afterwards; NULL: none
    PRIMARY KEY (run_id, version)
) STRICT, WITHOUT ROWID;

-- The versions that diverged before another one continued the run, separated by U+001F; they are part of the lane. NULL: none.
ALTER TABLE durable_run ADD COLUMN diverged TEXT;

-- Until when the pause of a live run for its repair (see run.control, 32) lasts. The process that repairs the run extends it. If that
-- process has died, a worker resumes the run, and deletes the row. A row may remain for a while after its repair.
CREATE TABLE durable_repair_pause (
    run_id     BLOB    NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
