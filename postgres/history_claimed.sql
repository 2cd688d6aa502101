-- Reads the checkpoints of the runs that claim.sql took just before, in the same
-- transaction and round trip. The shard of a run is in the last byte of its ID.
SELECT s.run_id, s.name, s.kind, s.status, s.attempt, s.epoch, s.output, s.error, s.started_at, s.ended_at, s.next_at
FROM unnest(string_to_array(current_setting('durable_claim.ids', true), ',')::uuid[]) AS claimed(id)
CROSS JOIN LATERAL (
    SELECT s.*
    FROM durable.step AS s
    WHERE s.shard = (get_byte(uuid_send(claimed.id), 15) & 63)::smallint AND s.run_id = claimed.id
    ORDER BY s.name
    OFFSET 0
) AS s;
