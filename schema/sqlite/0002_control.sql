-- Pause, resume and cancel; signals; children that wake their parents; tags; the outbox of events.
-- The same as schema/postgres/0002_control.sql.

ALTER TABLE durable_run ADD COLUMN control INTEGER NOT NULL DEFAULT 0; -- bits: 1 paused itself, 2 paused with an ancestor, 4 cancel requested, 8 has to begin by a time, 16 held because its code does not fit its history, 32 (with 1) paused for a repair
ALTER TABLE durable_run ADD COLUMN woken INTEGER NOT NULL DEFAULT 0; -- a signal or the end of a child was recorded while the run was running
ALTER TABLE durable_run ADD COLUMN detached INTEGER NOT NULL DEFAULT 0; -- the child continues when its parent ends
ALTER TABLE durable_run ADD COLUMN paused_at INTEGER;
ALTER TABLE durable_run ADD COLUMN paused_by TEXT; -- the actor; column reason has the reason
ALTER TABLE durable_run ADD COLUMN cancelled_at INTEGER; -- when a cancel was first requested
ALTER TABLE durable_run ADD COLUMN cancelled_by TEXT;
ALTER TABLE durable_run ADD COLUMN cancel_reason TEXT;

-- A run that was paused because of its crashes counts as paused itself.
UPDATE durable_run SET control = 1 WHERE status = 4;

-- The children of a run.
CREATE INDEX durable_run_child ON durable_run (parent_id, shard) WHERE parent_id <> x'';

-- The runs about which their workers must be notified.
CREATE INDEX durable_run_news ON durable_run (owner) WHERE owner IS NOT NULL AND (control <> 0 OR woken <> 0);

-- Runs that were terminated while a worker owned them, until the worker has been notified. The rows
-- of these runs have no owner any more.
CREATE TABLE durable_terminated (
    worker BLOB    NOT NULL,
    run_id BLOB    NOT NULL,
    epoch  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (worker, run_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE durable_signal (
    shard      INTEGER NOT NULL,
    run_id     BLOB    NOT NULL,
    id         BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    key        TEXT,                    -- the caller's idempotency key: a signal with the same key is sent once
    step       TEXT,                    -- the receive that took the signal; NULL: the signal is waiting
    payload    BLOB,
    created_at INTEGER NOT NULL,
    arrived_at INTEGER NOT NULL,        -- by this machine's clock, in the transaction that writes the signal; it is compared with the deadlines of receives
    PRIMARY KEY (shard, run_id, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX durable_signal_key ON durable_signal (shard, run_id, key) WHERE key IS NOT NULL;

-- The order in which signals are received: oldest first.
CREATE INDEX durable_signal_queue ON durable_signal (shard, run_id, name, created_at, id) WHERE step IS NULL;

CREATE TABLE durable_tag (
    shard  INTEGER NOT NULL,
    run_id BLOB    NOT NULL,
    key    TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    PRIMARY KEY (shard, run_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX durable_tag_value ON durable_tag (key, value, run_id);

-- Events of runs, written in the same transaction as the change that they report. A file has one
-- writer at a time, so id is the order of the commits.
CREATE TABLE durable_event (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id BLOB    NOT NULL,
    type   INTEGER NOT NULL,            -- 1 lease lost 2 moved 3 priority changed 4 repaired 5 deleted 6 continued 7 version changed 8 resumed 9 signalled 10 tagged 11 timeout set 12 triggered 13 backfilled 14 queue deleted 15 limit deleted 16 schedule deleted 104 paused 105 completed 106 failed 107 cancelled 109 expired
    at     INTEGER NOT NULL,
    actor  TEXT,                        -- who has requested it, and why; NULL if nobody has said so
    reason TEXT,
    old_value TEXT,                     -- before and after: the queue, the priority, the generation, the version or the deadline; of a deletion: the ID, and the number of runs; new alone: the signal, the tags or the schedule
    new_value TEXT
) STRICT;

DROP VIEW durable_steps;

-- In these views and in later ones, column run is the ID of the run as it is stored. A query by it uses the primary key, and a query by the
-- text of the ID cannot: SQLite knows no index for the result of hex(), and one more index would cost every start a row.
--
-- If a run has ended, its calls without an outcome are cancelled, and so are sleeps that had not
-- ended by then. A sleep has the status started until its time has come, although its row is
-- complete from the beginning. ORDER BY run_id, seq returns the calls of a run in the order in
-- which they began.
CREATE VIEW durable_steps AS
SELECT hex(run_id) AS run_id, seq, replace(replace(replace(name, '%', '%25'), '/', '%2F'), char(31), '/') AS name,
       CASE kind WHEN 1 THEN 'step' WHEN 2 THEN 'tx' WHEN 3 THEN 'sleep' WHEN 4 THEN 'choice' WHEN 5 THEN 'receive'
                 WHEN 6 THEN 'child' WHEN 7 THEN 'map' WHEN 8 THEN 'compensation' WHEN 9 THEN 'signal' WHEN 10 THEN 'start'
                 WHEN 11 THEN 'tags' WHEN 12 THEN 'cancel' WHEN 13 THEN 'now' WHEN 14 THEN 'uuid' WHEN 15 THEN 'failure' WHEN 16 THEN 'renewal' WHEN 17 THEN 'graph' WHEN 18 THEN 'patch' END AS kind,
       CASE WHEN cancelled THEN 'cancelled' WHEN asleep THEN 'started'
            WHEN status = 1 THEN 'started' WHEN status = 2 THEN 'backoff' WHEN status = 3 THEN 'completed' WHEN status = 4 THEN 'failed' END AS status,
       attempt, epoch >> 32 AS epoch, iif(substr(output, 1, 1) = x'c0', json_object('encoded', length(output)), CAST(output AS TEXT)) AS output, iif(substr(error, 1, 1) = x'c0', json_object('encoded', length(error)), CAST(error AS TEXT)) AS error, iif(substr(failures, 1, 1) = x'c0', json_object('encoded', length(failures)), CAST(failures AS TEXT)) AS failures,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') AS started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', CASE WHEN cancelled THEN run_ended_at WHEN kind <> 3 THEN ended_at WHEN NOT asleep THEN next_at END / 1e6,
                'unixepoch') AS ended_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', next_at / 1e6, 'unixepoch') AS next_at, shard, run_id AS run
FROM (
    SELECT step.*, run.ended_at AS run_ended_at,
           run.ended_at IS NOT NULL AND (step.status < 3 OR step.kind = 3 AND run.ended_at < step.next_at) AS cancelled,
           step.kind = 3 AND step.next_at > (julianday('now') - 2440587.5) * 86400e6 AS asleep
    FROM durable_step AS step
    LEFT JOIN durable_run AS run ON run.id = step.run_id AND (step.status < 3 OR step.kind = 3)
);

CREATE VIEW durable_signals AS
SELECT hex(run_id) AS run_id, name, key, iif(substr(payload, 1, 1) = x'c0', json_object('encoded', length(payload)), CAST(payload AS TEXT)) AS payload,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       replace(replace(replace(step, '%', '%25'), '/', '%2F'), char(31), '/') AS received_by, hex(id) AS id
FROM durable_signal;

CREATE VIEW durable_events AS
SELECT id, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at, hex(run_id) AS run_id,
       CASE type WHEN 1 THEN 'lease lost' WHEN 2 THEN 'moved' WHEN 3 THEN 'priority changed' WHEN 4 THEN 'repaired' WHEN 5 THEN 'deleted' WHEN 6 THEN 'continued' WHEN 7 THEN 'version changed' WHEN 8 THEN 'resumed' WHEN 9 THEN 'signalled' WHEN 10 THEN 'tagged' WHEN 11 THEN 'timeout set'
                 WHEN 12 THEN 'triggered' WHEN 13 THEN 'backfilled' WHEN 14 THEN 'queue deleted' WHEN 15 THEN 'limit deleted' WHEN 16 THEN 'schedule deleted'
                 WHEN 104 THEN 'paused' WHEN 105 THEN 'completed'
                 WHEN 106 THEN 'failed' WHEN 107 THEN 'cancelled' WHEN 109 THEN 'expired' END AS type,
       actor, reason, old_value, new_value
FROM durable_event;
