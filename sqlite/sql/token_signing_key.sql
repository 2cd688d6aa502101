-- Selects the key that signs tokens.
SELECT value FROM durable_secret WHERE name = 'token';
