-- Runs, steps and workers, as in schema/postgres/0001_core.sql. SQLite 3.37 or newer.
--
-- Times are microseconds since 1970 in UTC. IDs are the sixteen bytes of the UUID.
-- parent_id is an empty blob for a root, because NULLs would defeat UNIQUE.
--
-- A file is never distributed, so shard leads no key here: IDs grow with time, and what is being
-- worked on shares a few pages at the end, where 64 shards would have an end each. For the same
-- reason steps lie in the order in which they came, with an index over them, and not run by run.

-- The key that signs tokens; made at its first use.
CREATE TABLE durable_secret (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE durable_run (
    id          BLOB    NOT NULL,
    shard       INTEGER NOT NULL,
    parent_id   BLOB    NOT NULL DEFAULT x'',
    name        TEXT    NOT NULL,       -- a root's: the caller's ID; a child's: its step name
    workflow    TEXT    NOT NULL,
    queue       TEXT    NOT NULL,
    status      INTEGER NOT NULL,       -- 1 pending 2 running 3 waiting 4 paused 5 completed 6 failed 7 cancelled 9 expired
    epoch       INTEGER NOT NULL,       -- fences writes; upper 32 bits: +1 at every claim, lower: its nonce
    crashes     INTEGER NOT NULL DEFAULT 0, -- claims after a lost lease since the last new checkpoint
    progress    INTEGER NOT NULL DEFAULT 0, -- checkpoints seen at the last claim after a crash
    owner       BLOB,
    lost_by     BLOB,                   -- the worker that had the lease of lost_at
    lost_at     INTEGER,                -- when it was last claimed after its lease had ended
    wake_at     INTEGER,                -- the one column that makes a run claimable
    deadline_at INTEGER,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    ended_at    INTEGER,
    version     TEXT    NOT NULL DEFAULT '',
    trace       TEXT    NOT NULL DEFAULT '',
    reason      TEXT,
    input       BLOB,
    output      BLOB,
    error       BLOB,
    PRIMARY KEY (id),
    UNIQUE (name, parent_id, shard)
) STRICT, WITHOUT ROWID;

-- Dispatch, timers, retries, deadlines and crash recovery are all one query on this index.
CREATE INDEX durable_run_wake ON durable_run (queue, workflow, wake_at) WHERE wake_at IS NOT NULL;

-- Runs that lost their process lately, which a claim takes one by one.
CREATE INDEX durable_run_suspect ON durable_run (queue, workflow, wake_at) WHERE wake_at IS NOT NULL AND crashes > 0;

-- A worker's runs, for the day it is found dead: else that would read the whole table.
CREATE INDEX durable_run_owner ON durable_run (owner) WHERE owner IS NOT NULL;

CREATE TABLE durable_step (
    shard      INTEGER NOT NULL,
    run_id     BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    kind       INTEGER NOT NULL,        -- 1 step 2 tx 3 sleep 4 choice
    status     INTEGER NOT NULL,        -- 1 started 2 backoff 3 completed 4 failed
    attempt    INTEGER NOT NULL,
    seq        INTEGER NOT NULL DEFAULT 0, -- the order in which the calls of a run began
    epoch      INTEGER NOT NULL,        -- the writer's
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    next_at    INTEGER,
    output     BLOB,
    error      BLOB,
    failures   BLOB,                    -- the first and the last attempt that failed or was interrupted, or a child's workflow; NULL: neither
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
    silent_at    INTEGER NOT NULL,           -- when it counts as gone, unless it is heard of before
    executes     TEXT                        -- a JSON array of [queue, workflow]; NULL: too many to be listed
) STRICT, WITHOUT ROWID;

-- For people with the sqlite3 shell: states in words, payloads as text.
CREATE VIEW durable_runs AS
SELECT hex(id) AS id, name, hex(parent_id) AS parent_id, workflow, queue,
       CASE status WHEN 1 THEN 'pending' WHEN 2 THEN 'running' WHEN 3 THEN 'waiting' WHEN 4 THEN 'paused'
                   WHEN 5 THEN 'completed' WHEN 6 THEN 'failed' WHEN 7 THEN 'cancelled' WHEN 9 THEN 'expired' END AS status,
       epoch >> 32 AS epoch, crashes, hex(owner) AS owner, reason, version,
       CAST(input AS TEXT) AS input, CAST(output AS TEXT) AS output, CAST(error AS TEXT) AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', wake_at / 1e6, 'unixepoch') AS wake_at, shard
FROM durable_run;

CREATE VIEW durable_steps AS
SELECT hex(run_id) AS run_id, seq, name,
       CASE kind WHEN 1 THEN 'step' WHEN 2 THEN 'tx' WHEN 3 THEN 'sleep' WHEN 4 THEN 'choice' END AS kind,
       CASE status WHEN 1 THEN 'started' WHEN 2 THEN 'backoff' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' END AS status,
       attempt, epoch >> 32 AS epoch, CAST(output AS TEXT) AS output, CAST(error AS TEXT) AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at, shard
FROM durable_step;
