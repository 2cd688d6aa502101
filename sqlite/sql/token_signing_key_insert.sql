-- Inserts the key that signs tokens, unless there is one.
INSERT INTO durable_secret (name, value) VALUES ('token', ?1) ON CONFLICT (name) DO NOTHING;
