-- Claim: hand waiting jobs of known kinds to a worker, in (priority, run_at, id) order. A paused queue hands out
-- nothing; a job that another worker is claiming is passed over.
-- $1 kinds, $2 queues or NULL for all, $3 limit, $4 worker, $5 clock, or NULL for the database's own
-- Parameters are behind a SELECT so that the planner, who cannot see them, keeps his plan.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), known AS (
    -- Each queue that has something waiting, by one probe of the index, however much waits.
    SELECT (SELECT min(j.queue) FROM awa.jobs AS j WHERE j.state IN ('scheduled', 'available', 'retryable')) AS queue
    WHERE (SELECT $2::text[]) IS NULL
    UNION ALL
    SELECT (
        SELECT min(j.queue) FROM awa.jobs AS j
        WHERE j.state IN ('scheduled', 'available', 'retryable') AND j.queue > k.queue
    )
    FROM known AS k
    WHERE k.queue IS NOT NULL
), asked AS MATERIALIZED (
    SELECT a.queue
    FROM (SELECT k.queue FROM known AS k UNION SELECT unnest((SELECT $2::text[]))) AS a
    WHERE a.queue IS NOT NULL
      AND NOT EXISTS (
          SELECT 1 FROM awa.queue_meta AS q WHERE q.queue = a.queue AND q.paused_at IS NOT NULL
      )  -- QueueUnpaused
), foremost AS MATERIALIZED (
    -- The first of each queue and priority, and some more in case others claim these just now: no backlog is sorted.
    SELECT f.id
    FROM asked AS a CROSS JOIN generate_series(1, 4) AS p (priority) CROSS JOIN clock CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at
        FROM awa.jobs AS j
        WHERE j.state IN ('scheduled', 'available', 'retryable')
          AND (j.queue, j.priority) = (a.queue, p.priority)
          AND clock.now >= j.run_at
          AND j.kind = ANY ((SELECT $1::text[])::text[])
        ORDER BY j.run_at, j.id
        LIMIT (SELECT 2 * $3::bigint + 50)
    ) AS f
    ORDER BY f.priority, f.run_at, f.id
    LIMIT (SELECT 2 * $3::bigint + 50)
), claimable AS MATERIALIZED (
    SELECT j.id
    FROM awa.jobs AS j, clock
    WHERE j.id = ANY (ARRAY(SELECT f.id FROM foremost AS f))
      AND j.state IN ('scheduled', 'available', 'retryable')  -- StillWaiting
      AND j.run_at <= clock.now
    ORDER BY j.priority, j.run_at, j.id
    LIMIT (SELECT $3::bigint)
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE awa.jobs AS j
SET state = 'running', attempt = j.attempt + 1, attempted_at = clock.now, heartbeat_at = clock.now,
    attempted_by = $4::text
FROM claimable, clock
WHERE j.id = claimable.id
RETURNING
    j.id, j.kind, j.queue, j.args::text AS args, j.state, j.priority, j.attempt, j.max_attempts,
    awa.readable(j.run_at) AS run_at, awa.readable(j.created_at) AS created_at, j.tags, j.metadata::text AS metadata,
    j.deadline_s
