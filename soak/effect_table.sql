-- What the workload's transactions write. There is no key, so that a transaction which took
-- effect twice is seen.
CREATE TABLE soak_effect (
  run   text NOT NULL,
  step  text NOT NULL,
  value text NOT NULL
)
