-- Selects when a version of any workflow arrived last; NULL if there is none.
SELECT max(arrived_at) FROM durable_version;
