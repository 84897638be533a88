-- Per schedule, how far its removed rows had come before the log begins, and whether the log tells its definition.
-- $1 name, or NULL for all, $2 first event of the log
SELECT
    e.name,
    awa.readable(max(e.last_enqueued_at) FILTER (WHERE e.action = 'remove' AND e.id < $2::bigint)) AS floor,
    bool_or(e.action IN ('sync', 'remove') AND e.id >= $2::bigint) AS defined
FROM awa.cron_events AS e
WHERE e.name IS NOT NULL AND ($1::text IS NULL OR e.name = $1::text)
GROUP BY e.name
