-- Ends ownerships: each run that is still running (2) at the writer's epoch finishes,
-- parks, goes back or is set aside. One guarded update, so one result per run; the
-- count says whether all took, and run_state.sql reads those that did not.
UPDATE durable.run AS r
SET status = item.status, owner = NULL, wake_at = item.wake_at, ended_at = item.ended_at,
    output = item.output, error = item.error, reason = item.reason, trace = coalesce(item.trace, r.trace)
FROM unnest(
    $1::smallint[], $2::uuid[], $3::integer[], $4::smallint[],
    $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::timestamptz[], $10::timestamptz[]
) AS item(
    shard, id, epoch, status,
    output, error, reason, trace, wake_at, ended_at
)
WHERE r.shard = item.shard AND r.id = item.id AND r.epoch = item.epoch AND r.status = 2;
