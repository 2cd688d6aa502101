-- Subscribes to notifications of claimable runs and of changes to this worker's runs. The channel is the
-- schema's name with _wake.
LISTEN "durable_wake";
