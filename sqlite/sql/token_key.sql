-- The key that tokens are signed with.
SELECT value FROM durable_secret WHERE name = 'token';
