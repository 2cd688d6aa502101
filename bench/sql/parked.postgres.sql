-- Returns how many runs of a workflow wait.
SELECT count(*) FROM durable.run WHERE workflow = $1 AND status = 3;
