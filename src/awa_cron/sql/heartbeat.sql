-- Heartbeat: a worker renews the attempts it runs; one that does not come back is no longer its own. It is fenced as
-- outcomes are, or an old attempt would keep a new one alive that nobody runs.
-- $1 jobs, $2 attempt of each, $3 worker, $4 clock, or NULL for the database's own
-- For what is behind a SELECT see finish.
WITH beating AS MATERIALIZED (
    SELECT j.id
    FROM awa.jobs AS j JOIN unnest((SELECT $1::bigint[]), (SELECT $2::smallint[])) AS h (id, attempt) USING (id)
    WHERE j.state = (SELECT 'running')  -- StillRunning
      AND j.attempt = h.attempt  -- SameAttempt
      AND j.attempted_by = $3::text  -- SameOwner
    ORDER BY j.id
    FOR NO KEY UPDATE OF j
)
UPDATE awa.jobs AS j
SET heartbeat_at = coalesce($4::timestamptz, statement_timestamp())
FROM beating
WHERE j.id = beating.id
RETURNING j.id, j.attempt
