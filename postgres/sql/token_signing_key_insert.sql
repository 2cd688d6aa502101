-- Stores a new key for tokens, if there is none. A migration creates one, but a restore may have left out
-- its row.
INSERT INTO durable.secret (name, value) VALUES ('token', $1::bytea) ON CONFLICT (name) DO NOTHING;
