-- Pause, resume and cancel; signals; children that wake their parents; tags; the outbox.

-- See 0001_core.sql.
SET LOCAL search_path = pg_catalog, pg_temp;

ALTER TABLE durable.run
    ADD COLUMN control      smallint NOT NULL DEFAULT 0, -- bits: 1 paused itself, 2 paused with an ancestor, 4 to be cancelled, 8 has to begin by a time, 16 held because its code does not fit its history, 32 (with 1) paused for a repair
    ADD COLUMN woken        boolean  NOT NULL DEFAULT false, -- a signal or a child's end came while it was running
    ADD COLUMN detached     boolean  NOT NULL DEFAULT false, -- a child that continues when its parent ends
    ADD COLUMN paused_at    timestamptz,
    ADD COLUMN cancelled_at timestamptz,          -- when the cancel was first requested
    ADD COLUMN paused_by    text COLLATE "C",     -- the actor; the reason is in column reason
    ADD COLUMN cancelled_by text COLLATE "C",
    ADD COLUMN cancel_reason text;

-- A run that was paused because of repeated crashes counts as paused itself.
UPDATE durable.run SET control = 1 WHERE status = 4;

-- The children of a run. shard is first, so that the planner does not prefer this index to run_name on a
-- young table; see run_by_name.sql.
CREATE INDEX run_child ON durable.run (shard, parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE durable.signal (
    created_at timestamptz NOT NULL,
    arrived_at timestamptz NOT NULL,     -- by this database's clock, with the run's row locked; compared with the time limits of receives
    shard      smallint NOT NULL,
    id         uuid     NOT NULL,
    run_id     uuid     NOT NULL,
    name       text COLLATE "C" NOT NULL,
    key        text COLLATE "C",         -- the caller's idempotency key
    step       text COLLATE "C",         -- the receive that took it; NULL: it waits
    payload    bytea,
    PRIMARY KEY (shard, run_id, id)
);

CREATE UNIQUE INDEX signal_key ON durable.signal (shard, run_id, key) WHERE key IS NOT NULL;

-- Signals are received in the order of their creation.
CREATE INDEX signal_queue ON durable.signal (shard, run_id, name, created_at, id) WHERE step IS NULL;

CREATE TABLE durable.tag (
    shard  smallint NOT NULL,
    run_id uuid     NOT NULL,
    key    text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, run_id, key)
);

-- Ordered by run ID, which puts the newest runs last, whatever their shard.
CREATE INDEX tag_value ON durable.tag (key, value, run_id);

-- What happened to runs, and which queues, limits and schedules were deleted (run_id is zero), written in the transaction
-- of the change. Events are ordered by txid,
-- because a reader can see which transactions have ended: no event can be added below the oldest
-- transaction that is still open.
CREATE TABLE durable.event (
    at     timestamptz NOT NULL,
    txid   xid8     NOT NULL DEFAULT pg_current_xact_id(),
    shard  smallint NOT NULL,
    type   smallint NOT NULL,            -- 1 lease lost 2 moved 3 priority changed 4 repaired 5 deleted 6 continued 7 version changed 8 resumed 9 signalled 10 tagged 11 timeout set 12 triggered 13 backfilled 14 queue deleted 15 limit deleted 16 schedule deleted 104 paused 105 completed 106 failed 107 cancelled 109 expired
    run_id uuid     NOT NULL,
    actor  text,                         -- who has requested it, and why; NULL if nobody has said so
    reason text,
    old_value text,                      -- before and after: the queue, the priority, the generation, the version or the deadline; of a deletion: the ID, and the number of runs; new alone: the signal, the tags or the schedule
    new_value text,
    PRIMARY KEY (shard, txid, run_id, type)
);

-- All shards. With the condition that a row is in one of them, which holds for every row, a query by the ID of a run looks into the primary key
-- once per shard. Without the condition, PostgreSQL reads the whole table up to version 17, because shard leads the key.
CREATE FUNCTION durable.all_shards() RETURNS smallint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63}'::smallint[];

DROP VIEW durable.steps;

-- If a run has ended, its calls without an outcome are shown as cancelled, and so are sleeps that were
-- not over. A sleep is shown as started until it is over, although its row is complete from the
-- beginning. ORDER BY run_id, seq is the order in which the calls of a run began. The view does not sort,
-- so that queries that count or select rows do not pay for it.
CREATE VIEW durable.steps AS
SELECT s.run_id, s.seq, replace(replace(replace(s.name, '%', '%25'), '/', '%2F'), chr(31), '/') AS name,
       (ARRAY['step','tx','sleep','choice','receive','child','map','compensation',
              'signal','start','tags','cancel','now','uuid','failure','renewal','graph','patch'])[s.kind] AS kind,
       CASE WHEN r.ended_at OPERATOR(pg_catalog.<) s.next_at AND s.kind OPERATOR(pg_catalog.=) 3 THEN 'cancelled'
            WHEN r.ended_at IS NOT NULL AND s.status OPERATOR(pg_catalog.<) 3 THEN 'cancelled'
            WHEN s.kind OPERATOR(pg_catalog.=) 3 AND s.next_at OPERATOR(pg_catalog.>) pg_catalog.now() THEN 'started'
            ELSE (ARRAY['started','backoff','completed','failed'])[s.status] END AS status,
       s.attempt, (s.epoch OPERATOR(pg_catalog.>>) 32)::integer AS epoch,
       durable.payload_json(s.output) AS output,
       durable.payload_json(s.error) AS error,
       durable.payload_json(s.failures) AS failures,
       s.started_at,
       CASE WHEN r.ended_at OPERATOR(pg_catalog.<) s.next_at AND s.kind OPERATOR(pg_catalog.=) 3 THEN r.ended_at
            WHEN r.ended_at IS NOT NULL AND s.status OPERATOR(pg_catalog.<) 3 THEN r.ended_at
            WHEN s.kind OPERATOR(pg_catalog.<>) 3 THEN s.ended_at
            WHEN s.next_at OPERATOR(pg_catalog.<=) pg_catalog.now() THEN s.next_at END AS ended_at,
       s.next_at, s.shard
FROM durable.step AS s
LEFT JOIN durable.run AS r ON r.shard OPERATOR(pg_catalog.=) s.shard AND r.id OPERATOR(pg_catalog.=) s.run_id
    AND (s.status OPERATOR(pg_catalog.<) 3 OR s.kind OPERATOR(pg_catalog.=) 3)
WHERE s.shard OPERATOR(pg_catalog.=) ANY (durable.all_shards());

CREATE VIEW durable.signals AS
SELECT run_id, name, key, durable.payload_json(payload) AS payload, created_at, arrived_at,
       replace(replace(replace(step, '%', '%25'), '/', '%2F'), chr(31), '/') AS received_by, id, shard
FROM durable.signal
WHERE shard OPERATOR(pg_catalog.=) ANY (durable.all_shards());

CREATE VIEW durable.events AS
SELECT at, run_id,
       CASE type WHEN 1 THEN 'lease lost' WHEN 2 THEN 'moved' WHEN 3 THEN 'priority changed' WHEN 4 THEN 'repaired' WHEN 5 THEN 'deleted' WHEN 6 THEN 'continued' WHEN 7 THEN 'version changed' WHEN 8 THEN 'resumed' WHEN 9 THEN 'signalled' WHEN 10 THEN 'tagged' WHEN 11 THEN 'timeout set'
                 WHEN 12 THEN 'triggered' WHEN 13 THEN 'backfilled' WHEN 14 THEN 'queue deleted' WHEN 15 THEN 'limit deleted' WHEN 16 THEN 'schedule deleted'
                 WHEN 104 THEN 'paused' WHEN 105 THEN 'completed'
                 WHEN 106 THEN 'failed' WHEN 107 THEN 'cancelled' WHEN 109 THEN 'expired' END AS type,
       actor, reason, old_value, new_value, txid, shard
FROM durable.event;

INSERT INTO durable.migration (version, name) VALUES (2, '0002_control.sql');
