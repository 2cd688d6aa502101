-- Reads the key that tokens are signed with.
SELECT s.value FROM durable.secret AS s WHERE s.name = 'token';
