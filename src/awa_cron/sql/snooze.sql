-- Snooze, for each: the handler asks to be called later. The attempt does not count: `attempt` only rises, so the
-- budget rises with it. At the limit it cannot, and nothing is written.
-- Each job is a step of its own. One that comes back with a state is written; one without is held by somebody just
-- now, and nothing to wait for; one that does not come back is no longer this worker's.
-- $1 jobs, $2 attempt of each, $3 worker, $4 seconds until each may run, $5 clock, or NULL for the database's own
-- For what is behind a SELECT see finish.
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), given AS MATERIALIZED (
    SELECT *
    FROM unnest(
        (SELECT $1::bigint[]), (SELECT $2::smallint[]), (SELECT $4::float8[])
    ) AS g (id, attempt, delay_s)
), ours AS MATERIALIZED (
    SELECT g.*
    FROM awa.jobs AS j, given AS g
    WHERE j.id = g.id
      AND j.state = (SELECT 'running')  -- StillRunning
      AND j.attempt = g.attempt  -- SameAttempt
      AND j.attempted_by = $3::text  -- SameOwner
      AND j.max_attempts < 1000
    ORDER BY j.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
), written AS (
    UPDATE awa.jobs AS j
    SET state = 'scheduled', max_attempts = j.max_attempts + 1,
        run_at = clock.now + make_interval(secs => o.delay_s)
    FROM ours AS o, clock
    WHERE j.id = o.id
    RETURNING o.id, o.attempt, j.state
)
SELECT w.id, w.attempt, w.state FROM written AS w
UNION ALL
SELECT g.id, g.attempt, NULL
FROM given AS g JOIN awa.jobs AS j USING (id)
WHERE (j.state, j.attempt, j.attempted_by) = ((SELECT 'running'), g.attempt, $3::text)
  AND j.max_attempts < 1000
  AND NOT EXISTS (SELECT FROM ours AS o WHERE o.id = g.id)
