-- CancelOwn, for each: the handler says that nothing will come of its job. It ends without another attempt, and keeps
-- the reason.
-- Each job is a step of its own. One that comes back with a state is written; one without is held by somebody just
-- now, and nothing to wait for; one that does not come back is no longer this worker's.
-- $1 jobs, $2 attempt of each, $3 worker, $4 reasons as JSON, $5 clock, or NULL for the database's own
-- For what is behind a SELECT see finish.
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), given AS MATERIALIZED (
    SELECT *
    FROM unnest(
        (SELECT $1::bigint[]), (SELECT $2::smallint[]), (SELECT $4::text[])
    ) AS g (id, attempt, reason)
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
    SET state = 'cancelled', finalized_at = clock.now,
        errors = j.errors || (o.reason::jsonb || jsonb_build_object('at', clock.now, 'attempt', j.attempt))
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
