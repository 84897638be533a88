-- Dead jobs, the latest first.
-- $1 schedule, $2 kind, $3 queue, each or NULL for any, $4 limit
SELECT
    d.id, d.kind, d.queue, d.args::text AS args, d.priority, d.attempt, d.max_attempts, d.tags,
    d.metadata::text AS metadata, awa.readable(d.created_at) AS created_at, awa.readable(d.died_at) AS died_at,
    to_jsonb(d.errors)::text AS errors
FROM awa.jobs_dead AS d
WHERE ($1::text IS NULL OR d.metadata ? 'cron_name' AND d.metadata ->> 'cron_name' = $1::text)
  AND ($2::text IS NULL OR d.kind = $2::text)
  AND ($3::text IS NULL OR d.queue = $3::text)
ORDER BY d.died_at DESC, d.id DESC
LIMIT $4::bigint
