-- The schedules as they are at the end of the log.
-- $1 name, or NULL for all
SELECT
    c.name, c.cron_expr, c.timezone, c.missed_fire_policy, awa.readable(c.last_enqueued_at) AS last_enqueued_at,
    awa.readable(c.anchored_at) AS anchored_at, awa.readable(c.paused_at) AS paused_at,
    awa.readable(c.next_fire_at) AS next_fire_at
FROM awa.cron_jobs AS c
WHERE $1::text IS NULL OR c.name = $1::text
