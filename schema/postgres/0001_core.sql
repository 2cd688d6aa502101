-- Runs, steps and workers. PostgreSQL 15 or newer.
--
-- shard leads every primary key and is part of every unique key, so that the same
-- tables can be distributed by it unchanged. All times come from the database's
-- clock. Columns stand widest first, which saves padding in every row.

-- What names mean in views is settled here, so nothing that another role has created may be found.
-- It lasts for this transaction: apply each file in one, as psql --single-transaction does.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA durable;

-- Each migration records itself here, in the transaction that applies it, whoever runs it.
CREATE TABLE durable.migration (
    applied_at timestamptz NOT NULL DEFAULT now(),
    version    integer     NOT NULL PRIMARY KEY,
    name       text        NOT NULL
);

INSERT INTO durable.migration (version, name) VALUES (1, '0001_core.sql');

-- What must be kept from those who may read everything else: the key that signs tokens. Both
-- functions draw on the server's source of strong randomness.
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
    wake_at     timestamptz,            -- the one column that makes a run claimable
    deadline_at timestamptz,
    epoch       bigint   NOT NULL,      -- fences writes; upper 32 bits: +1 at every claim, lower: its nonce
    progress    integer  NOT NULL DEFAULT 0, -- checkpoints seen at the last claim after a crash
    shard       smallint NOT NULL,
    status      smallint NOT NULL,      -- 1 pending 2 running 3 waiting 4 paused 5 completed 6 failed 7 cancelled 9 expired
    crashes     smallint NOT NULL DEFAULT 0, -- claims after a lost lease since the last new checkpoint
    id          uuid     NOT NULL,
    parent_id   uuid,
    owner       uuid,
    lost_by     uuid,                   -- the worker that had that lease
    name        text COLLATE "C" NOT NULL,   -- a root's: the caller's ID; a child's: its step name
    workflow    text COLLATE "C" NOT NULL,
    queue       text COLLATE "C" NOT NULL,
    version     text COLLATE "C" NOT NULL DEFAULT '',
    trace       text COLLATE "C" NOT NULL DEFAULT '',
    reason      text,
    input       bytea,
    output      bytea,
    error       bytea,
    PRIMARY KEY (shard, id),
    -- In this order: led by shard, the planner would scan a whole shard with it on a young table.
    CONSTRAINT run_name UNIQUE NULLS NOT DISTINCT (name, parent_id, shard)
);

-- Dispatch, timers, retries, deadlines and crash recovery are all one query on this index.
CREATE INDEX run_wake ON durable.run (queue, workflow, wake_at) WHERE wake_at IS NOT NULL;

-- Runs that lost their process lately, which a claim takes one by one.
CREATE INDEX run_suspect ON durable.run (queue, workflow, wake_at) WHERE wake_at IS NOT NULL AND crashes > 0;

CREATE TABLE durable.step (
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    next_at    timestamptz,
    epoch      bigint   NOT NULL,      -- the writer's
    attempt    integer  NOT NULL,
    seq        integer  NOT NULL DEFAULT 0, -- the order in which the calls of a run began
    shard      smallint NOT NULL,
    kind       smallint NOT NULL,       -- 1 step 2 tx 3 sleep 4 choice
    status     smallint NOT NULL,       -- 1 started 2 backoff 3 completed 4 failed
    run_id     uuid     NOT NULL,
    name       text COLLATE "C" NOT NULL,
    output     bytea,
    error      bytea,
    failures   bytea,                  -- the first and the last attempt that failed or was interrupted, or a child's workflow; NULL: neither
    PRIMARY KEY (shard, run_id, name)
);

CREATE TABLE durable.worker (
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    attended_at  timestamptz,           -- since when it holds its presence lock; NULL: it does not
    server_started_at timestamptz,      -- of the server that keeps the lock
    silent_at    timestamptz NOT NULL,  -- when it counts as gone, unless it is heard of before
    capacity     integer NOT NULL,
    active       integer NOT NULL,
    state        smallint NOT NULL DEFAULT 1, -- 1 running 2 draining
    id           uuid    NOT NULL PRIMARY KEY,
    name         text    NOT NULL,
    version      text    NOT NULL,
    queues       text[],                -- of the workflows, one for each
    workflows    text[]                 -- that it executes; NULL: too many to be listed
);

-- For people in psql: states in words, payloads as JSON.
CREATE VIEW durable.runs AS
SELECT id, name, parent_id, workflow, queue,
       (ARRAY['pending','running','waiting','paused','completed','failed','cancelled',NULL,'expired'])[status] AS status,
       (epoch OPERATOR(pg_catalog.>>) 32)::integer AS epoch, crashes, owner, reason, version,
       convert_from(input, 'UTF8')::json AS input,
       convert_from(output, 'UTF8')::json AS output,
       convert_from(error, 'UTF8')::json AS error,
       created_at, started_at, ended_at, wake_at, deadline_at, shard
FROM durable.run;

CREATE VIEW durable.steps AS
SELECT run_id, seq, name,
       (ARRAY['step','tx','sleep','choice'])[kind] AS kind,
       (ARRAY['started','backoff','completed','failed'])[status] AS status,
       attempt, (epoch OPERATOR(pg_catalog.>>) 32)::integer AS epoch,
       convert_from(output, 'UTF8')::json AS output,
       convert_from(error, 'UTF8')::json AS error,
       started_at, ended_at, next_at, shard
FROM durable.step;
