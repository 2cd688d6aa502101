-- The tables of the designs that durable is compared with, as in setup.postgres.sql.
CREATE TABLE ceiling_step (
    shard  INTEGER NOT NULL,
    run_id BLOB    NOT NULL,
    name   TEXT    NOT NULL,
    output BLOB,
    PRIMARY KEY (shard, run_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE naive_run (
    id     BLOB NOT NULL PRIMARY KEY,
    status TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE naive_step (
    run_id BLOB NOT NULL REFERENCES naive_run,
    name   TEXT NOT NULL,
    output BLOB,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
