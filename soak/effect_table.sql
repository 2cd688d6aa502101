-- Holds the rows that the transactions of the workload write. It has no key, so that a transaction that took effect
-- twice leaves two rows.
CREATE TABLE soak_effect (
  run   text NOT NULL,
  step  text NOT NULL,
  value text NOT NULL
)
