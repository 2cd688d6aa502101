-- Keeps a new key for tokens, if there is none. The schema is made with one; its data may not have been
-- restored.
INSERT INTO durable.secret (name, value) VALUES ('token', $1::bytea) ON CONFLICT (name) DO NOTHING;
