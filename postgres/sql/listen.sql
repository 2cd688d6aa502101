-- Hears of runs that became claimable, and of news for this worker. The channel is the schema's name with _wake.
LISTEN "durable_wake";
