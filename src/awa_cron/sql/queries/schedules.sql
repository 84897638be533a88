-- Every stored schedule, for operators.
-- $1 name, or NULL for all
SELECT
    c.name, c.cron_expr, c.timezone, c.missed_fire_policy, c.last_enqueued_at, c.anchored_at, c.paused_at,
    c.paused_by, c.kind, c.queue, q.paused_at IS NOT NULL AS queue_paused, c.args::text AS args, c.priority,
    c.max_attempts, c.tags, c.metadata::text AS metadata, c.created_at, c.updated_at
FROM awa.cron_jobs AS c
LEFT JOIN awa.queue_meta AS q USING (queue)
WHERE $1::text IS NULL OR c.name = $1::text
ORDER BY c.name
