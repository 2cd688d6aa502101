-- Keeps a key for tokens, if there is none.
INSERT INTO durable_secret (name, value) VALUES ('token', ?1) ON CONFLICT (name) DO NOTHING;
