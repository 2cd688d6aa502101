-- Returns how many runs of a workflow have ended since a time, and the seconds in which the middle eight tenths of them ended.
SELECT count(*), coalesce(extract(epoch FROM percentile_disc(0.9) WITHIN GROUP (ORDER BY ended_at) - percentile_disc(0.1) WITHIN GROUP (ORDER BY ended_at)), 0)::double precision
FROM durable.run
WHERE ended_at >= $1 AND workflow = $2;
