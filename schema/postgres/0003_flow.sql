-- Flow control: schedules.

-- See 0001_core.sql.
SET LOCAL search_path = pg_catalog, pg_temp;

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
       s.state OPERATOR(pg_catalog.->) 'deleted'::text IS NOT NULL AS deleted
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

INSERT INTO durable.migration (version, name) VALUES (3, '0003_flow.sql');
