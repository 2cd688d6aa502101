-- Records the timeline $2 of the database in limits that were used on another one. Nothing is granted under them for the
-- length of a lease ($4, in microseconds), and at least for one period of the rate and until the rate has paid back a whole
-- burst, because rows of their keys, with what they had granted, may be lost.
UPDATE durable.step_limit AS l
SET timeline = $2::text, closed_until = item.closed_until
FROM (
    SELECT f.name,
           CASE WHEN f.timeline = '' THEN f.closed_until
                ELSE $3::timestamptz + greatest(f.period_us, $4::bigint, f.burst * ((f.period_us + f.rate - 1) / nullif(f.rate, 0))) * interval '1 microsecond' END AS closed_until
    FROM durable.step_limit AS f
    WHERE f.name = ANY ($1::text[]) AND f.timeline <> $2::text
    ORDER BY f.name
    FOR UPDATE
) AS item
WHERE l.name = item.name;
