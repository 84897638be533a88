-- Snooze: the handler asks to be called later. The attempt does not count: `attempt` only rises, so the budget rises
-- with it. At the limit it cannot, and nothing is written.
-- $1 job, $2 attempt, $3 worker, $4 seconds until it may run, $5 clock, or NULL for the database's own
UPDATE awa.jobs AS j
SET state = 'scheduled', max_attempts = j.max_attempts + 1,
    run_at = coalesce($5::timestamptz, statement_timestamp()) + make_interval(secs => $4::float8)
WHERE j.id = $1::bigint
  AND j.state = 'running'  -- StillRunning
  AND j.attempt = $2::smallint  -- SameAttempt
  AND j.attempted_by = $3::text  -- SameOwner
  AND j.max_attempts < 1000
RETURNING j.state
