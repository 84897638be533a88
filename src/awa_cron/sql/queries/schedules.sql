-- Every stored schedule, for operators, with the clock.
-- $1 name, or NULL for all
SELECT
    statement_timestamp() AS now, q.paused_by AS queue_paused_by, awa.readable(q.paused_at) AS queue_paused_at,
    c.name, c.cron_expr, c.timezone, c.missed_fire_policy, awa.readable(c.last_enqueued_at) AS last_enqueued_at,
    awa.readable(c.anchored_at) AS anchored_at, awa.readable(c.next_fire_at) AS next_fire_at,
    awa.readable(c.paused_at) AS paused_at, c.paused_by, c.kind, c.queue,
    q.paused_at IS NOT NULL AS queue_paused, c.args::text AS args, c.priority, c.max_attempts, c.tags, c.deadline_s,
    c.metadata::text AS metadata, awa.readable(c.created_at) AS created_at, awa.readable(c.updated_at) AS updated_at
FROM awa.cron_jobs AS c
LEFT JOIN awa.queue_meta AS q USING (queue)
WHERE $1::text IS NULL OR c.name = $1::text
ORDER BY c.name
