-- Hears of runs that became claimable. The channel is the schema's name with _wake.
LISTEN "durable_wake";
