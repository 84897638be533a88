-- The newest events of a schedule, newest first.
-- $1 name, or NULL for every schedule and the leadership, $2 limit, $3 time from which on they were recorded,
-- or NULL for any
SELECT
    e.id, e.recorded_at, e.clock, e.action, e.name, e.actor, e.fires, e.job_ids,
    awa.readable(e.last_enqueued_at) AS last_enqueued_at, e.details::text AS details
FROM awa.cron_events AS e
WHERE ($1::text IS NULL OR e.name = $1::text)
  AND ($3::timestamptz IS NULL OR e.recorded_at >= $3::timestamptz)
ORDER BY e.id DESC
LIMIT $2::bigint
