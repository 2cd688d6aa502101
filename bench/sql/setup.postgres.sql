-- The tables of the designs that durable is compared with, in a database of their own.
--
-- ceiling_step is durable's table of steps with the key and the result only. naive_run and
-- naive_step are the tables of a textbook design.
CREATE SCHEMA bench;

CREATE TABLE bench.ceiling_step (
    shard  smallint NOT NULL,
    run_id uuid     NOT NULL,
    name   text COLLATE "C" NOT NULL,
    output bytea,
    PRIMARY KEY (shard, run_id, name)
);

CREATE TABLE bench.naive_run (
    id     uuid NOT NULL PRIMARY KEY,
    status text NOT NULL
);

CREATE TABLE bench.naive_step (
    run_id uuid NOT NULL REFERENCES bench.naive_run,
    name   text NOT NULL,
    output bytea,
    PRIMARY KEY (run_id, name)
);
