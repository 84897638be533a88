-- CancelOwn: the handler says that nothing will come of its job. It ends without another attempt, and keeps the reason.
-- $1 job, $2 attempt, $3 worker, $4 reason as JSON, $5 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
)
UPDATE awa.jobs AS j
SET state = 'cancelled', finalized_at = clock.now,
    errors = j.errors || ($4::jsonb || jsonb_build_object('at', clock.now, 'attempt', j.attempt))
FROM clock
WHERE j.id = $1::bigint
  AND j.state = 'running'  -- StillRunning
  AND j.attempt = $2::smallint  -- SameAttempt
  AND j.attempted_by = $3::text  -- SameOwner
RETURNING j.state
