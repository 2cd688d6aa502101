-- Versions of the code: which of them execute which workflows, and in which order they came.

-- A run whose row has a version (run.version) that is listed here is not claimed by workers of a version that was first seen
-- earlier, while a worker of its own or of a later version lives.
CREATE TABLE durable_version (
    workflow      TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    queue         TEXT    NOT NULL,   -- from which the workers take runs; empty: all queues
    first_seen_at INTEGER NOT NULL,   -- the versions of a workflow are in this order; equal times in the order of their names
    seen_at       INTEGER NOT NULL,   -- when a worker last reported the version
    arrived_at    INTEGER NOT NULL,   -- when it was first seen, or seen again after a minute without a report
    PRIMARY KEY (workflow, version, queue)
) STRICT, WITHOUT ROWID;

-- A claim that may take runs of other versions looks whether one has arrived that it does not know.
CREATE INDEX durable_version_arrived ON durable_version (arrived_at);
