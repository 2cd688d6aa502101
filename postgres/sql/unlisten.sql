-- Ends what listen.sql has begun, in a session that listens to other channels too.
UNLISTEN "durable_wake";
