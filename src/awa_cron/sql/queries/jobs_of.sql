-- A schedule's jobs, or some others, the newest first.
-- $1 name, $2 ids, $3 fire time as its label has it, each or NULL for any, $4 limit
SELECT
    j.id, j.kind, j.queue, j.state, j.metadata ->> 'cron_name' AS cron_name, j.attempt, j.max_attempts,
    j.metadata ->> 'cron_fire_time' AS fire_label, j.metadata ? 'cron_triggered_at' AS triggered,
    awa.readable(j.created_at) AS created_at, awa.readable(j.run_at) AS run_at,
    awa.readable(j.attempted_at) AS attempted_at, j.attempted_by, awa.readable(j.finalized_at) AS finalized_at,
    to_jsonb(j.errors)::text AS errors, awa.readable(q.paused_at) AS queue_paused_at, q.paused_by AS queue_paused_by
FROM awa.jobs AS j
LEFT JOIN awa.queue_meta AS q USING (queue)
WHERE ($1::text IS NULL OR j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' = $1::text)
  AND ($2::bigint[] IS NULL OR j.id = ANY ($2::bigint[]))
  AND ($3::text IS NULL OR j.metadata ->> 'cron_fire_time' = $3::text)
ORDER BY j.id DESC
LIMIT $4::bigint
