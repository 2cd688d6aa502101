-- Versions of the code: which of them execute which workflows, and in which order they came.

-- See 0001_core.sql.
SET LOCAL search_path = pg_catalog, pg_temp;

-- A run whose row has a version (run.version) that is listed here is not claimed by workers of a version that was first seen
-- earlier, while a worker of its own or of a later version lives.
CREATE TABLE durable.version (
    first_seen_at timestamptz NOT NULL,  -- the versions of a workflow are in this order; equal times in the order of their names
    seen_at       timestamptz NOT NULL,  -- when a worker last reported the version
    arrived_at    timestamptz NOT NULL,  -- when it was first seen, or seen again after a minute without a report
    workflow      text COLLATE "C" NOT NULL,
    version       text COLLATE "C" NOT NULL,
    queue         text COLLATE "C" NOT NULL,  -- from which the workers take runs; empty: all queues
    PRIMARY KEY (workflow, version, queue)
);

-- A claim that may take runs of other versions looks whether one has arrived that it does not know.
CREATE INDEX version_arrived ON durable.version (arrived_at);

INSERT INTO durable.migration (version, name) VALUES (5, '0005_versions.sql');
