-- Finish: the handler returned. A worker whose job was rescued meanwhile changes nothing.
-- $1 job, $2 attempt, $3 worker, $4 clock, or NULL for the database's own
UPDATE awa.jobs AS j
SET state = 'completed', finalized_at = coalesce($4::timestamptz, statement_timestamp())
WHERE j.id = $1::bigint
  AND j.state = 'running'  -- StillRunning
  AND j.attempt = $2::smallint  -- SameAttempt
  AND j.attempted_by = $3::text  -- SameOwner
RETURNING j.state
