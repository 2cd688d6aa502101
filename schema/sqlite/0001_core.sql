-- Runs, steps and workers, as in schema/postgres/0001_core.sql. SQLite 3.37 or newer.
--
-- Times are microseconds since 1970 in UTC. IDs are the 16 bytes of the UUID. parent_id of a root
-- is an empty blob, because UNIQUE treats all NULLs as different.
--
-- A file is never distributed, so no key of these tables begins with shard. IDs grow with time, so
-- the active runs share a few pages at the end of the table; with shard first, each of the 64
-- shards would have its own end. For the same reason steps are stored in the order of their
-- creation, with an index, and not run by run.

-- The key that signs tokens. Its first use creates it.
CREATE TABLE durable_secret (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE durable_run (
    id          BLOB    NOT NULL,
    shard       INTEGER NOT NULL,
    parent_id   BLOB    NOT NULL DEFAULT x'',
    name        TEXT    NOT NULL,       -- of a root: the caller's ID; of a child: the name of its step
    workflow    TEXT    NOT NULL,
    queue       TEXT    NOT NULL,
    priority    INTEGER NOT NULL DEFAULT 0, -- higher first
    lane        INTEGER NOT NULL,       -- hash of queue, workflow and priority; its three lowest bits are the admission state: 0 not needed 1 pending 2 granted 3 in line 6 bypassed
    status      INTEGER NOT NULL,       -- 1 pending 2 running 3 waiting 4 paused 5 completed 6 failed 7 cancelled 9 expired
    epoch       INTEGER NOT NULL,       -- fences writes; upper 32 bits: increased by 1 at every claim; lower 32 bits: the nonce of the claim
    crashes     INTEGER NOT NULL DEFAULT 0, -- claims after a lost lease, since the last new checkpoint
    progress    INTEGER NOT NULL DEFAULT 0, -- terminal checkpoints and children, together, at the last claim after a crash
    owner       BLOB,
    lost_by     BLOB,                   -- the worker that lost its lease before lost_at
    lost_at     INTEGER,                -- when the run was last claimed after its lease had expired
    wake_at     INTEGER,                -- a run is claimable from this time on; NULL: it is not claimable
    deadline_at INTEGER,
    timeout     INTEGER,                -- in microseconds: a repair of the ended run begins it anew; NULL, 0: none
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    ended_at    INTEGER,
    version     TEXT    NOT NULL DEFAULT '',
    trace       TEXT    NOT NULL DEFAULT '',
    reason      TEXT,
    input       BLOB,
    output      BLOB,
    error       BLOB,
    failed_step TEXT,                   -- of a failed or expired run: the step of its error; empty: the function failed by itself
    failed_type TEXT,                   -- likewise: the type of its error. NULL: the run has not failed
    PRIMARY KEY (id),
    UNIQUE (name, parent_id, shard)
) STRICT, WITHOUT ROWID;

-- Claims, timers, retries, deadlines and crash recovery are one query, which uses this index.
CREATE INDEX durable_run_wake ON durable_run (lane, wake_at) WHERE wake_at IS NOT NULL;

-- Runs whose process died recently. A claim takes them one at a time.
CREATE INDEX durable_run_suspect ON durable_run (lane, wake_at) WHERE wake_at IS NOT NULL AND crashes > 0;

-- Failed and expired runs, by what failed. Other runs have no entries.
CREATE INDEX durable_run_failure ON durable_run (workflow, failed_step, failed_type, id) WHERE failed_step IS NOT NULL;

-- Runs that wait without a deadline, paused runs, failed runs and expired runs, by their age.
CREATE INDEX durable_run_idle ON durable_run (status, id) WHERE wake_at IS NULL AND status IN (3, 4, 6, 9);

-- The runs of a worker. When the worker is found dead, this index avoids reading the whole table.
CREATE INDEX durable_run_owner ON durable_run (owner) WHERE owner IS NOT NULL;

CREATE TABLE durable_step (
    shard      INTEGER NOT NULL,
    run_id     BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    kind       INTEGER NOT NULL,        -- 1 step 2 tx 3 sleep 4 choice
    status     INTEGER NOT NULL,        -- 1 started 2 backoff 3 completed 4 failed
    attempt    INTEGER NOT NULL,
    seq        INTEGER NOT NULL DEFAULT 0, -- twice the position of the call in the order in which the calls of its run began, plus 1 if the goroutine of its scope made it
    epoch      INTEGER NOT NULL,        -- the epoch of the writer
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    next_at    INTEGER,
    output     BLOB,
    error      BLOB,
    failures   BLOB,                    -- the first and the last attempt that failed or was interrupted; or the workflow of a child; NULL: neither
    child_ends INTEGER,                 -- how many ends of its children the call has counted; NULL: none
    child_ends_awaited INTEGER,         -- an end wakes the run when this many are counted; NULL or 0: none does
    PRIMARY KEY (run_id, name)
) STRICT;

CREATE TABLE durable_worker (
    id           BLOB    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    capacity     INTEGER NOT NULL,
    active       INTEGER NOT NULL,
    state        INTEGER NOT NULL DEFAULT 1, -- 1 running 2 draining
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    silent_at    INTEGER NOT NULL,           -- when the worker counts as gone, unless it renews its heartbeat before
    clock_ahead  INTEGER NOT NULL DEFAULT 0, -- by how many microseconds its clock was ahead of the database's at the heartbeat
    quiet        INTEGER NOT NULL DEFAULT 0, -- 1: an operator wants it to take nothing new
    last_change  TEXT,                       -- what an operator did last, as JSON
    workflows    TEXT,                       -- a JSON array of what it executes; NULL: too many to be listed
    queues       TEXT                        -- a JSON array of the queues from which it takes runs; NULL: from all
) STRICT, WITHOUT ROWID;

-- The views are for people who use the sqlite3 shell. They show states as words, and payloads as
-- text.
CREATE VIEW durable_runs AS
SELECT hex(id) AS id, name, hex(parent_id) AS parent_id, workflow, queue,
       CASE status WHEN 1 THEN 'pending' WHEN 2 THEN 'running' WHEN 3 THEN 'waiting' WHEN 4 THEN 'paused'
                   WHEN 5 THEN 'completed' WHEN 6 THEN 'failed' WHEN 7 THEN 'cancelled' WHEN 9 THEN 'expired' END AS status,
       epoch >> 32 AS epoch, crashes, hex(owner) AS owner, reason, version,
       iif(substr(input, 1, 1) = x'c0', json_object('encoded', length(input)), CAST(input AS TEXT)) AS input, iif(substr(output, 1, 1) = x'c0', json_object('encoded', length(output)), CAST(output AS TEXT)) AS output, iif(substr(error, 1, 1) = x'c0', json_object('encoded', length(error)), CAST(error AS TEXT)) AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', wake_at / 1e6, 'unixepoch') AS wake_at, shard
FROM durable_run;

CREATE VIEW durable_steps AS
SELECT hex(run_id) AS run_id, seq, name,
       CASE kind WHEN 1 THEN 'step' WHEN 2 THEN 'tx' WHEN 3 THEN 'sleep' WHEN 4 THEN 'choice' END AS kind,
       CASE status WHEN 1 THEN 'started' WHEN 2 THEN 'backoff' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' END AS status,
       attempt, epoch >> 32 AS epoch, iif(substr(output, 1, 1) = x'c0', json_object('encoded', length(output)), CAST(output AS TEXT)) AS output, iif(substr(error, 1, 1) = x'c0', json_object('encoded', length(error)), CAST(error AS TEXT)) AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at, shard
FROM durable_step;
