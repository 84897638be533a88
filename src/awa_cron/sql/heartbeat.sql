-- Heartbeat: a worker renews the jobs it runs; a job that does not come back is no longer its own.
-- $1 jobs, $2 worker, $3 clock, or NULL for the database's own
UPDATE awa.jobs AS j
SET heartbeat_at = coalesce($3::timestamptz, statement_timestamp())
WHERE j.id = ANY ($1::bigint[])
  AND j.state = 'running'
  AND j.attempted_by = $2::text
RETURNING j.id
