-- Fail, for each: the handler raised. The job waits for its next attempt, or is failed for good when it has none
-- left.
-- Each job is a step of its own. One that comes back with a state is written; one without is held by somebody just
-- now, and nothing to wait for; one that does not come back is no longer this worker's.
-- $1 jobs, $2 attempt of each, $3 worker, $4 errors as JSON, $5 seconds until the next attempt of each,
-- $6 clock, or NULL for the database's own
-- For what is behind a SELECT see finish.
WITH clock AS MATERIALIZED (
    SELECT coalesce($6::timestamptz, statement_timestamp()) AS now
), given AS MATERIALIZED (
    SELECT *
    FROM unnest(
        (SELECT $1::bigint[]), (SELECT $2::smallint[]), (SELECT $4::text[]), (SELECT $5::float8[])
    ) AS g (id, attempt, error, delay_s)
), ours AS MATERIALIZED (
    SELECT g.*
    FROM awa.jobs AS j, given AS g
    WHERE j.id = g.id
      AND j.state = (SELECT 'running')  -- StillRunning
      AND j.attempt = g.attempt  -- SameAttempt
      AND j.attempted_by = $3::text  -- SameOwner
    ORDER BY j.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
), written AS (
    UPDATE awa.jobs AS j
    SET state = CASE WHEN j.attempt < j.max_attempts THEN 'retryable' ELSE 'failed' END,
        run_at = CASE WHEN j.attempt < j.max_attempts THEN clock.now + make_interval(secs => o.delay_s) ELSE j.run_at END,
        finalized_at = CASE WHEN j.attempt < j.max_attempts THEN NULL ELSE clock.now END,
        errors = j.errors || (o.error::jsonb || jsonb_build_object('at', clock.now, 'attempt', j.attempt))
    FROM ours AS o, clock
    WHERE j.id = o.id
    RETURNING o.id, o.attempt, j.state
)
SELECT w.id, w.attempt, w.state FROM written AS w
UNION ALL
SELECT g.id, g.attempt, NULL
FROM given AS g JOIN awa.jobs AS j USING (id)
WHERE (j.state, j.attempt, j.attempted_by) = ((SELECT 'running'), g.attempt, $3::text)
  AND NOT EXISTS (SELECT FROM ours AS o WHERE o.id = g.id)
