-- Begins a transaction that takes the write lock immediately.
BEGIN IMMEDIATE;
