-- Claim: hand waiting jobs of known kinds to a worker, in (priority, run_at, id) order. A paused queue hands out
-- nothing; a job that another worker is claiming is passed over.
-- $1 kinds, $2 queues or NULL for all, $3 limit, $4 worker, $5 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), claimable AS MATERIALIZED (
    SELECT j.id
    FROM awa.jobs AS j, clock
    WHERE j.state IN ('scheduled', 'available', 'retryable')  -- StillWaiting
      AND j.kind = ANY ($1::text[])
      AND ($2::text[] IS NULL OR j.queue = ANY ($2::text[]))
      AND j.run_at <= clock.now
      AND NOT EXISTS (
          SELECT 1 FROM awa.queue_meta AS q WHERE q.queue = j.queue AND q.paused_at IS NOT NULL
      )  -- QueueUnpaused
    ORDER BY j.priority, j.run_at, j.id
    LIMIT $3::bigint
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE awa.jobs AS j
SET state = 'running', attempt = j.attempt + 1, attempted_at = clock.now, heartbeat_at = clock.now,
    attempted_by = $4::text
FROM claimable, clock
WHERE j.id = claimable.id
RETURNING
    j.id, j.kind, j.queue, j.args::text AS args, j.state, j.priority, j.attempt, j.max_attempts, j.run_at,
    j.created_at, j.tags, j.metadata::text AS metadata, j.deadline_s
