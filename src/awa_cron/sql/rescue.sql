-- Rescue: jobs whose worker fell silent wait again, or are failed when that was their last attempt.
-- $1 seconds of silence, $2 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($2::timestamptz, statement_timestamp()) AS now
), silent AS MATERIALIZED (
    SELECT j.id
    FROM awa.jobs AS j, clock
    WHERE j.state = 'running'
      AND j.heartbeat_at < clock.now - make_interval(secs => $1::float8)  -- Silent
    ORDER BY j.id
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE awa.jobs AS j
SET state = CASE WHEN j.attempt < j.max_attempts THEN 'retryable' ELSE 'failed' END,
    run_at = CASE WHEN j.attempt < j.max_attempts THEN clock.now ELSE j.run_at END,
    finalized_at = CASE WHEN j.attempt < j.max_attempts THEN NULL ELSE clock.now END,
    errors = j.errors || jsonb_build_object(
        'error', 'the worker fell silent', 'worker', j.attempted_by, 'at', clock.now, 'attempt', j.attempt
    )
FROM silent, clock
WHERE j.id = silent.id
RETURNING j.id, j.state
