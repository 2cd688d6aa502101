-- Runs, steps and workers. PostgreSQL 15 or newer.
--
-- shard leads every primary key and is part of every unique key, so that the tables can be distributed by
-- it without a change. All times come from the database's clock. The widest columns come first, which
-- saves padding in every row.

-- Names in views are resolved here, so that nothing that another role has created may be found. The
-- setting lasts for this transaction: apply each file in one, as psql --single-transaction does.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA durable;

-- Each migration inserts a row here, in the transaction that applies it, whoever executes it.
CREATE TABLE durable.migration (
    applied_at timestamptz NOT NULL DEFAULT now(),
    version    integer     NOT NULL PRIMARY KEY,
    name       text        NOT NULL
);

INSERT INTO durable.migration (version, name) VALUES (1, '0001_core.sql');

-- Secrets, which roles that may read everything else must not read: the key that signs tokens. Both
-- functions below use the server's source of strong randomness.
CREATE TABLE durable.secret (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value bytea            NOT NULL
);

INSERT INTO durable.secret (name, value) VALUES ('token', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

CREATE TABLE durable.run (
    created_at  timestamptz NOT NULL,
    started_at  timestamptz,
    ended_at    timestamptz,
    lost_at     timestamptz,            -- when it was last claimed after its lease had ended
    wake_at     timestamptz,            -- when the run becomes claimable; NULL: never
    deadline_at timestamptz,
    timeout     bigint,                 -- in microseconds: a repair of the ended run begins it anew; NULL, 0: none
    epoch       bigint   NOT NULL,      -- fences writes; upper 32 bits: count, +1 at every claim; lower: nonce of the claim
    lane        bigint   NOT NULL,      -- hash of queue, workflow and priority; its three lowest bits are the admission state: 0 not needed 1 pending 2 granted 3 in line 6 bypassed
    progress    integer  NOT NULL DEFAULT 0, -- terminal checkpoints and children, together, at the last claim after a crash
    shard       smallint NOT NULL,
    status      smallint NOT NULL,      -- 1 pending 2 running 3 waiting 4 paused 5 completed 6 failed 7 cancelled 9 expired
    priority    smallint NOT NULL DEFAULT 0, -- higher first
    crashes     smallint NOT NULL DEFAULT 0, -- claims after a lost lease since the last new checkpoint
    id          uuid     NOT NULL,
    parent_id   uuid,
    owner       uuid,
    lost_by     uuid,                   -- the worker that lost that lease
    name        text COLLATE "C" NOT NULL,   -- of a root: the caller's ID; of a child: its step name
    workflow    text COLLATE "C" NOT NULL,
    queue       text COLLATE "C" NOT NULL,
    version     text COLLATE "C" NOT NULL DEFAULT '',
    trace       text COLLATE "C" NOT NULL DEFAULT '',
    reason      text,
    input       bytea,
    output      bytea,
    error       bytea,
    failed_step text COLLATE "C",      -- of a failed or expired run: the step of its error; empty: the function failed by itself
    failed_type text COLLATE "C",      -- likewise: the type of its error. NULL: the run has not failed
    PRIMARY KEY (shard, id),
    -- name is first: with shard first, the planner would scan a whole shard by this index on a young
    -- table.
    CONSTRAINT run_name UNIQUE NULLS NOT DISTINCT (name, parent_id, shard)
);

-- Dispatch, timers, retries, deadlines and crash recovery are one query on this index. Claims read the lanes
-- from which they may take runs, and no others.
CREATE INDEX run_wake ON durable.run (lane, wake_at) WHERE wake_at IS NOT NULL;

-- Runs that recently lost their process. A claim takes them one by one.
CREATE INDEX run_suspect ON durable.run (lane, wake_at) WHERE wake_at IS NOT NULL AND crashes > 0;

-- Failed and expired runs, by what failed. Other runs have no entries.
CREATE INDEX run_failure ON durable.run (workflow, failed_step, failed_type, id) WHERE failed_step IS NOT NULL;

-- Runs that wait without a deadline, paused runs, failed runs and expired runs, by their age.
CREATE INDEX run_idle ON durable.run (status, id) WHERE wake_at IS NULL AND status IN (3, 4, 6, 9);

CREATE TABLE durable.step (
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    next_at    timestamptz,
    epoch      bigint   NOT NULL,      -- of the writer
    attempt    integer  NOT NULL,
    seq        integer  NOT NULL DEFAULT 0, -- twice the position of the call in the order in which the calls of its run began, plus 1 if the goroutine of its scope made it
    shard      smallint NOT NULL,
    kind       smallint NOT NULL,       -- 1 step 2 tx 3 sleep 4 choice
    status     smallint NOT NULL,       -- 1 started 2 backoff 3 completed 4 failed
    run_id     uuid     NOT NULL,
    name       text COLLATE "C" NOT NULL,
    output     bytea,
    error      bytea,
    failures   bytea,                  -- the first and the last attempt that failed or was interrupted, or a child's workflow; NULL: neither
    child_ends integer,                -- how many ends of its children the call has counted; NULL: none
    child_ends_awaited integer,        -- an end wakes the run when this many are counted; NULL or 0: none does
    PRIMARY KEY (shard, run_id, name)
);

CREATE TABLE durable.worker (
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    attended_at  timestamptz,           -- since when it holds its presence lock; NULL: it holds none
    server_started_at timestamptz,      -- when the server that keeps the lock started
    silent_at    timestamptz NOT NULL,  -- when it counts as dead, unless there is another heartbeat
    clock_ahead  bigint  NOT NULL DEFAULT 0, -- by how many microseconds its clock was ahead of the database's at the heartbeat
    capacity     integer NOT NULL,
    active       integer NOT NULL,
    state        smallint NOT NULL DEFAULT 1, -- 1 running 2 draining
    id           uuid    NOT NULL PRIMARY KEY,
    name         text    NOT NULL,
    version      text    NOT NULL,
    quiet        boolean NOT NULL DEFAULT false, -- an operator wants it to take nothing new
    last_change  text,                  -- what an operator did last, as JSON
    queues       text[],                -- from which it takes runs; NULL: from all
    workflows    text[]                 -- what it executes; NULL: too many to be listed
);

-- Views for users of psql: states as words, payloads as JSON.

-- A payload as JSON. One that a codec has encoded begins with the byte C0, with which no UTF-8 text begins; of it, the
-- size in bytes is shown. The body is not a string: its names are bound here, not with the search_path of whoever reads
-- a view.
CREATE FUNCTION durable.payload_json(payload bytea) RETURNS json LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN substring(payload, 1, 1) = '\xc0'::bytea
            THEN json_build_object('encoded', length(payload))
            ELSE convert_from(payload, 'UTF8')::json END;

CREATE VIEW durable.runs AS
SELECT id, name, parent_id, workflow, queue,
       (ARRAY['pending','running','waiting','paused','completed','failed','cancelled',NULL,'expired'])[status] AS status,
       (epoch OPERATOR(pg_catalog.>>) 32)::integer AS epoch, crashes, owner, reason, version,
       durable.payload_json(input) AS input,
       durable.payload_json(output) AS output,
       durable.payload_json(error) AS error,
       created_at, started_at, ended_at, wake_at, deadline_at, shard
FROM durable.run;

CREATE VIEW durable.steps AS
SELECT run_id, seq, name,
       (ARRAY['step','tx','sleep','choice'])[kind] AS kind,
       (ARRAY['started','backoff','completed','failed'])[status] AS status,
       attempt, (epoch OPERATOR(pg_catalog.>>) 32)::integer AS epoch,
       durable.payload_json(output) AS output,
       durable.payload_json(error) AS error,
       started_at, ended_at, next_at, shard
FROM durable.step;
