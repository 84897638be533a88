-- Who took the leader's lock with a server process, when, and the newest sign that somebody evaluates.
-- $1 server process, or NULL, $2 how many of the newest events are looked at for the sign
SELECT taken.actor, taken.recorded_at AS since, sign.recorded_at AS enqueued_at, sign.actor AS enqueued_by
FROM (SELECT) AS always
LEFT JOIN LATERAL (
    SELECT e.actor, e.recorded_at
    FROM awa.cron_events AS e
    WHERE e.name IS NULL AND e.action = 'acquire_leader' AND e.details ->> 'backend_pid' = $1::text
    ORDER BY e.id DESC
    LIMIT 1
) AS taken ON true
LEFT JOIN LATERAL (
    SELECT newest.actor, newest.recorded_at
    FROM (SELECT e.* FROM awa.cron_events AS e ORDER BY e.id DESC LIMIT $2::bigint) AS newest
    WHERE newest.action = 'atomic_enqueue'
    ORDER BY newest.id DESC
    LIMIT 1
) AS sign ON true
