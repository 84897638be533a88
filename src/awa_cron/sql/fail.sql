-- Fail: the handler raised. The job waits for its next attempt, or is failed for good when it has none left.
-- $1 job, $2 attempt, $3 worker, $4 error as JSON, $5 seconds until the next attempt,
-- $6 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($6::timestamptz, statement_timestamp()) AS now
)
UPDATE awa.jobs AS j
SET state = CASE WHEN j.attempt < j.max_attempts THEN 'retryable' ELSE 'failed' END,
    run_at = CASE WHEN j.attempt < j.max_attempts THEN clock.now + make_interval(secs => $5::float8) ELSE j.run_at END,
    finalized_at = CASE WHEN j.attempt < j.max_attempts THEN NULL ELSE clock.now END,
    errors = j.errors || ($4::jsonb || jsonb_build_object('at', clock.now, 'attempt', j.attempt))
FROM clock
WHERE j.id = $1::bigint
  AND j.state = 'running'  -- StillRunning
  AND j.attempt = $2::smallint  -- SameAttempt
  AND j.attempted_by = $3::text  -- SameOwner
RETURNING j.state
