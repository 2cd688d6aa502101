-- Returns the key that signs tokens.
SELECT s.value FROM durable.secret AS s WHERE s.name = 'token';
