-- Returns the checkpoints of the runs that claim_runs.sql has just claimed, in the same transaction and round
-- trip. The shard of a run is in the last byte of its ID.
--
-- All histories together take about $1 bytes, and each run gets an equal part of that, so that the claim
-- returns in time. If a run has more, its next checkpoint is marked and comes without payloads, and
-- history_part.sql reads from there.
SELECT measured.reached > measured.most,
       measured.run_id, measured.name, measured.kind, measured.status, measured.attempt, measured.epoch,
       CASE WHEN measured.reached <= measured.most THEN measured.output END,
       CASE WHEN measured.reached <= measured.most THEN measured.error END,
       measured.started_at, measured.ended_at, measured.next_at, measured.seq,
       CASE WHEN measured.reached <= measured.most THEN measured.failures END
FROM (
    SELECT taken.ids, $1::bigint / greatest(cardinality(taken.ids), 1) AS most
    FROM (SELECT string_to_array(current_setting('durable_claim.ids', true), ',')::uuid[] AS ids) AS taken
) AS claimed
CROSS JOIN LATERAL unnest(claimed.ids) AS run(id)
CROSS JOIN LATERAL (
    SELECT own.*, claimed.most, sum(own.size) OVER (ORDER BY own.name ROWS UNBOUNDED PRECEDING) AS reached
    FROM (
        SELECT s.*, 100 + octet_length(s.name) + coalesce(octet_length(s.output), 0) + coalesce(octet_length(s.error), 0)
                   + coalesce(octet_length(s.failures), 0) AS size
        FROM durable.step AS s
        WHERE s.shard = (get_byte(uuid_send(run.id), 15) & 63)::smallint AND s.run_id = run.id
        ORDER BY s.name
        LIMIT 1 + claimed.most / 100
    ) AS own
) AS measured
WHERE measured.reached - measured.size <= measured.most;
