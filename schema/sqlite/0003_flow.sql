-- Flow control: schedules, limits on steps, queues, and starts that fold. The same as schema/postgres/0003_flow.sql.

-- Workers whose code is older than this version ignore queues, limits and schedules, and write NULL.
ALTER TABLE durable_worker ADD COLUMN schema_version INTEGER; -- the version of the schema that its code was written for

-- One row for each schedule. The worker that moves next_at on also starts the run, in the same transaction.
CREATE TABLE durable_schedule (
    name       TEXT    NOT NULL PRIMARY KEY,
    shard      INTEGER NOT NULL,
    next_at    INTEGER,                 -- when the next scheduled time is due; NULL: never, or paused
    waiting_at INTEGER,                 -- the scheduled time that waits for the end of last_run
    last_run   BLOB,
    paused     INTEGER NOT NULL DEFAULT 0,
    cancels    INTEGER NOT NULL DEFAULT 0, -- the time that waits has last_run cancelled
    fires      INTEGER NOT NULL DEFAULT 0, -- rows in table durable_fire, or more
    state      BLOB    NOT NULL         -- JSON; see view durable_schedules
) STRICT, WITHOUT ROWID;

-- Workers look here for due schedules.
CREATE INDEX durable_schedule_next ON durable_schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX durable_schedule_waiting ON durable_schedule (waiting_at) WHERE waiting_at IS NOT NULL;

-- What happened at the latest times of each schedule.
CREATE TABLE durable_fire (
    schedule TEXT    NOT NULL,
    at       INTEGER NOT NULL,          -- the scheduled time
    kind     INTEGER NOT NULL,          -- 1 scheduled 2 triggered 3 backfill
    outcome  INTEGER NOT NULL,          -- 1 started 2 waiting 3 skipped 4 replaced 5 missed 6 failed
    run_id   BLOB,
    fired_at INTEGER NOT NULL,
    PRIMARY KEY (schedule, at)
) STRICT, WITHOUT ROWID;

-- The older times at which runs were started: one bit for each second of an hour.
CREATE TABLE durable_fired (
    schedule TEXT    NOT NULL,
    hour     INTEGER NOT NULL,
    bits     BLOB    NOT NULL,
    PRIMARY KEY (schedule, hour)
) STRICT, WITHOUT ROWID;

CREATE VIEW durable_schedules AS
SELECT name,
       applies ->> 'cron' AS cron, applies ->> 'every' AS every, applies ->> 'location' AS location,
       applies ->> 'workflow' AS workflow, applies ->> 'queue' AS queue, coalesce(applies ->> 'priority', 0) AS priority,
       applies ->> 'group_key' AS group_key, applies -> 'input' AS input, applies ->> 'overlap' AS overlap,
       state ->> 'next_time' AS next_time,
       strftime('%Y-%m-%dT%H:%M:%fZ', next_at / 1e6, 'unixepoch') AS next_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', waiting_at / 1e6, 'unixepoch') AS waiting_at,
       hex(last_run) AS last_run, paused,
       state ->> 'paused_by' AS paused_by, state ->> 'pause_reason' AS pause_reason, state ->> 'problem' AS problem,
       state -> 'declared' AS declared, state ->> 'declared_version' AS declared_version,
       state -> 'operator' AS set_by_operator, state ->> 'set_by' AS set_by, state ->> 'set_at' AS set_at,
       state -> 'deleted' IS NOT NULL AS deleted, state -> 'last_change' AS last_change
FROM (
    SELECT name, next_at, waiting_at, last_run, paused, state, coalesce(state -> 'operator', state -> 'declared') AS applies
    FROM (SELECT name, next_at, waiting_at, last_run, paused, CAST(state AS TEXT) AS state FROM durable_schedule)
);

CREATE VIEW durable_fires AS
SELECT schedule, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at,
       CASE kind WHEN 1 THEN 'scheduled' WHEN 2 THEN 'triggered' WHEN 3 THEN 'backfill' END AS kind,
       CASE outcome WHEN 1 THEN 'started' WHEN 2 THEN 'waiting' WHEN 3 THEN 'skipped' WHEN 4 THEN 'replaced' WHEN 5 THEN 'missed'
                    WHEN 6 THEN 'failed' END AS outcome,
       hex(run_id) AS run_id, strftime('%Y-%m-%dT%H:%M:%fZ', fired_at / 1e6, 'unixepoch') AS fired_at
FROM durable_fire;

CREATE TABLE durable_step_limit (
    name             TEXT    NOT NULL PRIMARY KEY,
    concurrent       INTEGER NOT NULL DEFAULT 0, -- units that are held at once; 0: no bound
    rate             INTEGER NOT NULL DEFAULT 0, -- units that are granted per period; 0: no bound
    period_us        INTEGER NOT NULL DEFAULT 0,
    burst            INTEGER NOT NULL DEFAULT 0,
    declared         TEXT,                       -- JSON, as code has declared it
    declared_version TEXT,
    declared_at      INTEGER,
    declarer_started_at INTEGER,                 -- when the worker that has declared it started
    older_versions   TEXT    NOT NULL DEFAULT '[]', -- JSON: the versions that have declared the limit before; the latest 64
    chosen           TEXT,                       -- JSON, as an operator has set it
    chosen_by        TEXT,
    chosen_reason    TEXT,
    chosen_at        INTEGER,
    last_change      TEXT                        -- JSON: what an operator has done last
) STRICT, WITHOUT ROWID;

-- One row for each limit and key.
CREATE TABLE durable_limit_key (
    limit_name TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    now_at     INTEGER NOT NULL, -- the latest time at which permits were granted; it never goes back
    rate_used_until INTEGER,     -- the rate is used up until this time
    closed_until INTEGER,        -- nothing is granted before
    PRIMARY KEY (limit_name, key)
) STRICT, WITHOUT ROWID;

-- Steps that execute under a limit, or wait for it. A step has at most one permit.
CREATE TABLE durable_permit (
    shard      INTEGER NOT NULL,
    run_id     BLOB    NOT NULL,
    step       TEXT    NOT NULL,
    limit_name TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    status     INTEGER NOT NULL, -- 1 waiting 2 offered 3 held
    epoch      INTEGER NOT NULL, -- of the execution that requested it last
    attempt    INTEGER NOT NULL,
    units      INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    missed     INTEGER NOT NULL, -- an offer ended unused: the next one follows when the step requests the permit again
    arrived_at INTEGER NOT NULL,
    granted_at INTEGER,
    until_at   INTEGER,          -- the end of an offer
    PRIMARY KEY (shard, run_id, step)
) STRICT, WITHOUT ROWID;

-- The order of each line: higher priorities first, then by arrival. Those that have missed an offer are apart.
CREATE INDEX durable_permit_line ON durable_permit (limit_name, key, status, missed, priority DESC, arrived_at, run_id, step);

-- Queues with settings. declared and chosen are JSON; chosen applies if there is one.
CREATE TABLE durable_queue (
    name             TEXT    NOT NULL PRIMARY KEY,
    now_at           INTEGER NOT NULL,             -- the latest time of an admission; it never goes back
    rate_used_until  INTEGER,                      -- the rate is used up until this time
    closed_until     INTEGER,                      -- nothing begins before
    turns            TEXT    NOT NULL DEFAULT '[0,0,0,0,0]', -- JSON: of the run that was admitted last, for each priority from -2
    waiting          INTEGER NOT NULL DEFAULT 0,   -- places with state 2 or 3
    executing        INTEGER NOT NULL DEFAULT 0,   -- places with state 4
    open             INTEGER NOT NULL DEFAULT 0,   -- places that are open
    deleted          INTEGER NOT NULL DEFAULT 0,
    applied          TEXT,                         -- the settings at the last admission
    declared         TEXT,
    declared_version TEXT,
    declared_at      INTEGER,
    older_versions   TEXT    NOT NULL DEFAULT '[]', -- JSON: the versions that have declared the queue before; the latest 64
    chosen           TEXT,
    chosen_by        TEXT,
    chosen_reason    TEXT,
    chosen_at        INTEGER,
    paused_at        INTEGER,                      -- NULL: not paused
    paused_by        TEXT,
    pause_reason     TEXT,
    last_change      TEXT                          -- JSON: what an operator has done last; see view queues
) STRICT, WITHOUT ROWID;

-- The group keys of a queue that have something to count.
CREATE TABLE durable_queue_key (
    queue     TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    rate_used_until INTEGER,
    check_at  INTEGER,                             -- when an admission looks at those behind
    turns     TEXT    NOT NULL DEFAULT '[0,0,0,0,0]', -- JSON: of its run that entered the line last, for each priority from -2
    in_line_by_priority TEXT    NOT NULL DEFAULT '[0,0,0,0,0]', -- JSON: places with state 2, for each priority from -2
    executing INTEGER NOT NULL DEFAULT 0,
    open      INTEGER NOT NULL DEFAULT 0,
    in_line   INTEGER NOT NULL DEFAULT 0,          -- places with state 2
    in_line_begun INTEGER NOT NULL DEFAULT 0,      -- of them, those that have begun
    in_line_children INTEGER NOT NULL DEFAULT 0,   -- of them, children that have not begun
    behind    INTEGER NOT NULL DEFAULT 0,          -- places with state 3
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX durable_queue_key_look ON durable_queue_key (queue, check_at) WHERE check_at IS NOT NULL;

-- The places of runs in queues with settings.
CREATE TABLE durable_place (
    shard      INTEGER NOT NULL,
    run_id     BLOB    NOT NULL,
    queue      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    weight     INTEGER NOT NULL DEFAULT 1,
    priority   INTEGER NOT NULL,
    state      INTEGER NOT NULL,                   -- 0 gone 1 outside 2 in line 3 behind its key 4 executing 5 passing
    root       INTEGER NOT NULL,                   -- not a child: it counts as open from when it has begun until it ends
    begun      INTEGER NOT NULL DEFAULT 0,         -- it was admitted once
    turn       INTEGER NOT NULL DEFAULT 0,
    arrived_at INTEGER,                            -- when it was due first
    start_by   INTEGER,                            -- when the run expires if it has not begun
    PRIMARY KEY (shard, run_id)
) STRICT, WITHOUT ROWID;

-- The line of each queue, and those that wait behind others of their key.
CREATE INDEX durable_place_line ON durable_place (queue, begun, root, priority DESC, turn, arrived_at, run_id) WHERE state = 2;
CREATE INDEX durable_place_behind ON durable_place (queue, key, begun, root, priority DESC, arrived_at, run_id) WHERE state = 3;
CREATE INDEX durable_place_key ON durable_place (queue, key, run_id) WHERE state > 0;

-- Those that wait to begin, the oldest first. arrived_at is NULL until an admission has seen them.
CREATE INDEX durable_place_waiting ON durable_place (queue, arrived_at) WHERE state < 4 AND NOT begun;

CREATE VIEW durable_queues AS
SELECT name, coalesce(chosen, declared) AS settings, executing, open, waiting,
       strftime('%Y-%m-%d %H:%M:%f', paused_at / 1e6, 'unixepoch') AS paused_at, paused_by, pause_reason,
       declared, declared_version, chosen AS set_by_operator, chosen_by AS set_by, chosen_reason AS set_reason, deleted, last_change
FROM durable_queue;

CREATE VIEW durable_places AS
SELECT hex(run_id) AS run_id, queue, key AS group_key,
       CASE state WHEN 1 THEN 'outside' WHEN 2 THEN 'in line' WHEN 3 THEN 'behind key' WHEN 4 THEN 'executing' WHEN 5 THEN 'passing' END AS state,
       root AND begun AS open, priority, weight, turn,
       strftime('%Y-%m-%d %H:%M:%f', arrived_at / 1e6, 'unixepoch') AS arrived_at,
       strftime('%Y-%m-%d %H:%M:%f', start_by / 1e6, 'unixepoch') AS start_by, shard
FROM durable_place
WHERE state > 0;

-- Where admissions look for runs: those that have left their place or their line; those that are due without
-- a place, or whose time in line is over; and those with a place that are not claimed yet.
CREATE INDEX durable_run_departed ON durable_run (queue) WHERE lane & 3 > 0 AND (status >= 5 OR lane & 3 > 1 AND status IN (3, 4));
CREATE INDEX durable_run_arrived ON durable_run (queue, wake_at) WHERE lane & 1 = 1 AND wake_at IS NOT NULL;
CREATE INDEX durable_run_admitted ON durable_run (queue, wake_at) WHERE lane & 7 = 2 AND status = 1;

-- The keys under which starts fold: singletons, debounced starts and samples. A start with such a key changes
-- the row, and a worker that releases the run of a start that waits.
CREATE TABLE durable_fold (
    workflow TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    kind     INTEGER NOT NULL, -- 1 singleton 2 debounce 3 throttle
    check_at INTEGER NOT NULL, -- when a worker checks the row
    after_id BLOB,             -- a worker also checks the row when this run has ended
    waiting_id BLOB,           -- the run that is not released yet
    state    BLOB    NOT NULL, -- JSON; see view durable_folds
    input    BLOB,             -- of the run that waits, if a later start has replaced its own
    PRIMARY KEY (workflow, key, kind)
) STRICT, WITHOUT ROWID;

-- Workers look here for keys with something to do.
CREATE INDEX durable_fold_look ON durable_fold (check_at);
CREATE INDEX durable_fold_after ON durable_fold (after_id) WHERE after_id IS NOT NULL;

-- What a run waits for is looked up here.
CREATE INDEX durable_fold_waiting ON durable_fold (waiting_id) WHERE waiting_id IS NOT NULL;

CREATE VIEW durable_folds AS
SELECT workflow, key,
       CASE kind WHEN 1 THEN 'singleton' WHEN 2 THEN 'debounce' WHEN 3 THEN 'throttle' END AS kind,
       state ->> 'live' AS live_run, state ->> 'waiting' AS waiting_run,
       strftime('%Y-%m-%dT%H:%M:%fZ', check_at / 1e6, 'unixepoch') AS check_at, state
FROM (SELECT workflow, key, kind, check_at, CAST(state AS TEXT) AS state FROM durable_fold);
