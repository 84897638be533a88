-- The newest events of some schedules, newest first within each, as far back as a time.
-- $1 names, $2 how many of each at most, $3 since, by the clock that the action worked with
SELECT
    e.id, e.recorded_at, e.clock, e.action, e.name, e.actor, e.fires, e.job_ids,
    awa.readable(e.last_enqueued_at) AS last_enqueued_at, e.details::text AS details
FROM unnest($1::text[]) AS n (name)
CROSS JOIN LATERAL (
    SELECT * FROM awa.cron_events AS newest WHERE newest.name = n.name ORDER BY newest.id DESC LIMIT $2::bigint
) AS e
WHERE e.clock >= $3::timestamptz
ORDER BY e.name, e.id DESC
