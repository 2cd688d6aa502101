-- Flow control: schedules, limits on steps, queues, and starts that fold.

-- See 0001_core.sql.
SET LOCAL search_path = pg_catalog, pg_temp;

-- Workers whose code is older than this version ignore queues, limits and schedules, and write NULL.
ALTER TABLE durable.worker ADD COLUMN schema_version smallint; -- the version of the schema that its code was written for

-- One row for each schedule. The worker that moves next_at on also starts the run, in the same transaction.
CREATE TABLE durable.schedule (
    next_at    timestamptz,              -- when the next scheduled time is due; NULL: never, or paused
    waiting_at timestamptz,              -- the scheduled time that waits for the end of last_run
    fires      integer  NOT NULL DEFAULT 0, -- rows in table fire, or more
    shard      smallint NOT NULL,
    last_shard smallint,                 -- of last_run
    paused     boolean  NOT NULL DEFAULT false,
    cancels    boolean  NOT NULL DEFAULT false, -- the time that waits has last_run cancelled
    last_run   uuid,
    name       text COLLATE "C" NOT NULL,
    state      bytea    NOT NULL,        -- JSON; see view schedules
    PRIMARY KEY (shard, name)
);

-- Workers look here for due schedules.
CREATE INDEX schedule_next ON durable.schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_waiting ON durable.schedule (waiting_at) WHERE waiting_at IS NOT NULL;

-- What happened at the latest times of each schedule.
CREATE TABLE durable.fire (
    at       timestamptz NOT NULL,       -- the scheduled time
    fired_at timestamptz NOT NULL,
    shard    smallint NOT NULL,          -- of the schedule
    kind     smallint NOT NULL,          -- 1 scheduled 2 triggered 3 backfill
    outcome  smallint NOT NULL,          -- 1 started 2 waiting 3 skipped 4 replaced 5 missed 6 failed
    run_id   uuid,
    schedule text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, schedule, at)
);

-- The older times at which runs were started: one bit for each second of an hour.
CREATE TABLE durable.fired (
    hour     timestamptz NOT NULL,
    shard    smallint NOT NULL,
    schedule text COLLATE "C" NOT NULL,
    bits     bytea    NOT NULL,
    PRIMARY KEY (shard, schedule, hour)
);

CREATE VIEW durable.schedules AS
SELECT s.name,
       s.applies OPERATOR(pg_catalog.->>) 'cron'::text AS cron,
       s.applies OPERATOR(pg_catalog.->>) 'every'::text AS every,
       s.applies OPERATOR(pg_catalog.->>) 'location'::text AS location,
       s.applies OPERATOR(pg_catalog.->>) 'workflow'::text AS workflow,
       s.applies OPERATOR(pg_catalog.->>) 'queue'::text AS queue,
       coalesce(s.applies OPERATOR(pg_catalog.->>) 'priority'::text, '0')::smallint AS priority,
       s.applies OPERATOR(pg_catalog.->>) 'group_key'::text AS group_key,
       s.applies OPERATOR(pg_catalog.->) 'input'::text AS input,
       s.applies OPERATOR(pg_catalog.->>) 'overlap'::text AS overlap,
       s.state OPERATOR(pg_catalog.->>) 'next_time'::text AS next_time,
       s.next_at, s.waiting_at, s.last_run, s.paused,
       s.state OPERATOR(pg_catalog.->>) 'paused_by'::text AS paused_by,
       s.state OPERATOR(pg_catalog.->>) 'pause_reason'::text AS pause_reason,
       s.state OPERATOR(pg_catalog.->>) 'problem'::text AS problem,
       s.state OPERATOR(pg_catalog.->) 'declared'::text AS declared,
       s.state OPERATOR(pg_catalog.->>) 'declared_version'::text AS declared_version,
       s.state OPERATOR(pg_catalog.->) 'operator'::text AS set_by_operator,
       s.state OPERATOR(pg_catalog.->>) 'set_by'::text AS set_by,
       s.state OPERATOR(pg_catalog.->>) 'set_at'::text AS set_at,
       s.state OPERATOR(pg_catalog.->) 'deleted'::text IS NOT NULL AS deleted,
       s.state OPERATOR(pg_catalog.->) 'last_change'::text AS last_change
FROM (
    SELECT r.name, r.next_at, r.waiting_at, r.last_run, r.paused, r.state,
           coalesce(r.state OPERATOR(pg_catalog.->) 'operator'::text, r.state OPERATOR(pg_catalog.->) 'declared'::text) AS applies
    FROM (
        SELECT name, next_at, waiting_at, last_run, paused, convert_from(state, 'UTF8')::json AS state FROM durable.schedule
    ) AS r
) AS s;

CREATE VIEW durable.fires AS
SELECT schedule, at,
       (ARRAY['scheduled','triggered','backfill'])[kind] AS kind,
       (ARRAY['started','waiting','skipped','replaced','missed','failed'])[outcome] AS outcome,
       run_id, fired_at, shard
FROM durable.fire;

-- The bounds of each limit: those that apply, those that code has declared, and those that an operator
-- has set. declared and chosen are JSON.
CREATE TABLE durable.step_limit (
    declared_at      timestamptz,
    chosen_at        timestamptz,
    declarer_started_at timestamptz,              -- when the worker that has declared the limit started
    closed_until     timestamptz,                 -- nothing is granted before, under any key
    period_us        bigint  NOT NULL DEFAULT 0,  -- of the rate, in microseconds
    concurrent       integer NOT NULL DEFAULT 0,  -- units that are held at once; 0: no bound
    rate             integer NOT NULL DEFAULT 0,  -- units that are granted per period; 0: no bound
    burst            integer NOT NULL DEFAULT 0,
    name             text COLLATE "C" NOT NULL PRIMARY KEY,
    timeline         text COLLATE "C" NOT NULL DEFAULT '', -- the database's timeline at the last request of a step; empty: unknown
    declared         text,
    declared_version text COLLATE "C",
    older_versions   text[] COLLATE "C" NOT NULL DEFAULT '{}', -- that have declared the limit before; the latest 64, the last one first
    chosen           text,
    chosen_by        text,
    chosen_reason    text,
    last_change      text                         -- JSON: what an operator has done last
);

-- One row for each limit and key. A transaction that grants permits locks the row.
CREATE TABLE durable.limit_key (
    now_at     timestamptz NOT NULL,          -- the latest time at which permits were granted; it never goes back
    rate_used_until timestamptz,              -- the rate is used up until this time
    closed_until timestamptz,                 -- nothing is granted before
    limit_name text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    timeline   text COLLATE "C" NOT NULL,     -- the database's timeline when the key was last used; empty: unknown
    PRIMARY KEY (limit_name, key)
);

-- Steps that execute under a limit, or wait for it. A step has at most one permit.
CREATE TABLE durable.permit (
    arrived_at timestamptz NOT NULL,
    granted_at timestamptz,
    until_at   timestamptz,                   -- the end of an offer
    epoch      bigint   NOT NULL,             -- of the execution that requested it last
    attempt    integer  NOT NULL,
    units      integer  NOT NULL,
    shard      smallint NOT NULL,
    status     smallint NOT NULL,             -- 1 waiting 2 offered 3 held
    priority   smallint NOT NULL,
    missed     boolean  NOT NULL,             -- an offer ended unused: the next one follows when the step requests the permit again
    run_id     uuid     NOT NULL,
    limit_name text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    step       text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, run_id, step)
);

-- The order of each line: higher priorities first, then by arrival. Those that have missed an offer are apart.
CREATE INDEX permit_line ON durable.permit (limit_name, key, status, missed, priority DESC, arrived_at, run_id, step);

CREATE VIEW durable.permits AS
SELECT p.limit_name, p.key, p.run_id,
       replace(replace(replace(p.step, '%', '%25'), '/', '%2F'), chr(31), '/') AS step,
       (ARRAY['waiting','offered','held'])[p.status] AS status,
       p.units, p.priority, p.attempt, p.arrived_at, p.granted_at, p.until_at
FROM durable.permit AS p;

-- Queues with settings. Only admissions and operators lock a row: starts, wakes and ends of runs do not.
-- declared and chosen are JSON; chosen applies if there is one.
CREATE TABLE durable.queue (
    now_at           timestamptz NOT NULL,         -- the latest time of an admission; it never goes back
    rate_used_until  timestamptz,                  -- the rate is used up until this time
    closed_until     timestamptz,                  -- nothing begins before
    declared_at      timestamptz,
    chosen_at        timestamptz,
    paused_at        timestamptz,                  -- NULL: not paused
    turns            bigint[] NOT NULL DEFAULT '{0,0,0,0,0}', -- of the run that was admitted last, for each priority from -2
    waiting          bigint  NOT NULL DEFAULT 0,   -- places with state 2 or 3
    executing        integer NOT NULL DEFAULT 0,   -- places with state 4
    open             integer NOT NULL DEFAULT 0,   -- places that are open
    deleted          boolean NOT NULL DEFAULT false,
    name             text COLLATE "C" NOT NULL PRIMARY KEY,
    timeline         text COLLATE "C" NOT NULL DEFAULT '', -- the database's timeline at the last admission; empty: unknown
    applied          text,                         -- the settings at the last admission
    declared         text,
    declared_version text COLLATE "C",
    older_versions   text[] COLLATE "C" NOT NULL DEFAULT '{}', -- that have declared the queue before; the latest 64, the last one first
    chosen           text,
    chosen_by        text,
    chosen_reason    text,
    paused_by        text,
    pause_reason     text,
    last_change      text                          -- JSON: what an operator has done last; see view queues
);

-- The group keys of a queue that have something to count.
CREATE TABLE durable.queue_key (
    rate_used_until timestamptz,
    check_at  timestamptz,                         -- when an admission looks at those behind
    turns     bigint[] NOT NULL DEFAULT '{0,0,0,0,0}', -- of its run that entered the line last, for each priority from -2
    in_line_by_priority bigint[] NOT NULL DEFAULT '{0,0,0,0,0}', -- places with state 2, for each priority from -2
    executing integer NOT NULL DEFAULT 0,
    open      integer NOT NULL DEFAULT 0,
    in_line   integer NOT NULL DEFAULT 0,          -- places with state 2
    in_line_begun integer NOT NULL DEFAULT 0,      -- of them, those that have begun
    in_line_children integer NOT NULL DEFAULT 0,   -- of them, children that have not begun
    behind    integer NOT NULL DEFAULT 0,          -- places with state 3
    queue     text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, key)
);

CREATE INDEX queue_key_look ON durable.queue_key (queue, check_at) WHERE check_at IS NOT NULL;

-- The places of runs in queues with settings.
CREATE TABLE durable.place (
    arrived_at timestamptz,                        -- when it was due first
    start_by   timestamptz,                        -- when the run expires if it has not begun
    turn       bigint   NOT NULL DEFAULT 0,
    weight     integer  NOT NULL DEFAULT 1,
    shard      smallint NOT NULL,
    state      smallint NOT NULL,                  -- 0 gone 1 outside 2 in line 3 behind its key 4 executing 5 passing
    priority   smallint NOT NULL,
    root       boolean  NOT NULL,                  -- not a child: it counts as open from when it has begun until it ends
    begun      boolean  NOT NULL DEFAULT false,    -- it was admitted once
    run_id     uuid     NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, run_id)
);

-- The line of each queue, and those that wait behind others of their key. Runs that have begun, and children,
-- need less than others, so they stand apart.
CREATE INDEX place_line ON durable.place (queue, begun, root, priority DESC, turn, arrived_at, run_id) WHERE state = 2;
CREATE INDEX place_behind ON durable.place (queue, key, begun, root, priority DESC, arrived_at, run_id) WHERE state = 3;
CREATE INDEX place_key ON durable.place (queue, key, run_id) WHERE state > 0;

-- Those that wait to begin, the oldest first. arrived_at is NULL until an admission has seen them.
CREATE INDEX place_waiting ON durable.place (queue, arrived_at) WHERE state < 4 AND NOT begun;

CREATE VIEW durable.queues AS
SELECT q.name, coalesce(q.chosen, q.declared)::json AS settings, q.executing, q.open, q.waiting, q.paused_at, q.paused_by, q.pause_reason,
       q.declared::json AS declared, q.declared_version, q.declared_at,
       q.chosen::json AS set_by_operator, q.chosen_by AS set_by, q.chosen_reason AS set_reason, q.chosen_at AS set_at, q.deleted,
       q.last_change::json AS last_change
FROM durable.queue AS q;

CREATE VIEW durable.places AS
SELECT p.run_id, p.queue, p.key AS group_key,
       (ARRAY['outside','in line','behind key','executing','passing'])[p.state] AS state,
       p.root AND p.begun AS open, p.priority, p.weight, p.turn, p.arrived_at, p.start_by, p.shard
FROM durable.place AS p
WHERE p.state > 0;

-- Where admissions look for runs: 1 those that have left their place or their line; 2 those that are due without a place,
-- or whose time in line is over; 3 those with a place that are not claimed yet. One index, because each index with a
-- condition costs every write of a run, whatever its queue; see docs/decisions.md. The statements repeat the expression.
CREATE INDEX run_in_queue ON durable.run (
    (CASE WHEN status >= 5 OR lane & 3 > 1 AND status IN (3, 4) THEN 1 WHEN lane & 1 = 1 THEN 2 WHEN lane & 7 = 2 AND status = 1 THEN 3 END),
    queue, wake_at
) WHERE lane & 3 > 0;

-- The keys under which starts fold: singletons, debounced starts and samples. A start with such a key locks
-- the row, and a worker that releases the run of a start that waits.
CREATE TABLE durable.fold (
    check_at    timestamptz NOT NULL,    -- when a worker checks the row
    shard       smallint NOT NULL,
    kind        smallint NOT NULL,       -- 1 singleton 2 debounce 3 throttle
    after_shard smallint,                -- of after_id
    after_id    uuid,                    -- a worker also checks the row when this run has ended
    waiting_id  uuid,                    -- the run that is not released yet
    workflow    text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    state       bytea    NOT NULL,       -- JSON; see view folds
    input       bytea,                   -- of the run that waits, if a later start has replaced its own
    PRIMARY KEY (shard, workflow, key, kind)
);

-- Workers look here for keys with something to do.
CREATE INDEX fold_look ON durable.fold (check_at);
CREATE INDEX fold_after ON durable.fold (after_id) WHERE after_id IS NOT NULL;

-- What a run waits for is looked up here.
CREATE INDEX fold_waiting ON durable.fold (waiting_id) WHERE waiting_id IS NOT NULL;

CREATE VIEW durable.folds AS
SELECT f.workflow, f.key,
       (ARRAY['singleton','debounce','throttle'])[f.kind] AS kind,
       (f.state OPERATOR(pg_catalog.->>) 'live'::text)::uuid AS live_run,
       f.waiting_id AS waiting_run,
       f.check_at, f.state, f.shard
FROM (SELECT workflow, key, kind, check_at, shard, waiting_id, convert_from(state, 'UTF8')::json AS state FROM durable.fold) AS f;

INSERT INTO durable.migration (version, name) VALUES (3, '0003_flow.sql');
