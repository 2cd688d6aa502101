-- Returns the time from start to end of the runs that ended in a window, in milliseconds.
SELECT extract(epoch FROM ended_at - created_at)::double precision * 1000
FROM durable.run
WHERE ended_at >= $1 AND ended_at < $2 AND workflow = $3;
