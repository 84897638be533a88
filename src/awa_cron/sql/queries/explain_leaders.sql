-- The first election after an instant, what the leadership did last before it, and the last sign of that leader.
-- $1 instant, $2 until when, $3 how many events before the election are searched for a sign
SELECT
    elected.actor AS elected, elected.clock AS elected_at, earlier.action, earlier.actor, earlier.clock AS at,
    sign.clock AS enqueued_at
FROM (SELECT) AS always
LEFT JOIN LATERAL (
    SELECT e.id, e.actor, e.clock
    FROM awa.cron_events AS e
    WHERE e.name IS NULL AND e.action = 'acquire_leader'
      AND e.clock > $1::timestamptz AND e.clock <= $2::timestamptz
    ORDER BY e.id
    LIMIT 1
) AS elected ON true
LEFT JOIN LATERAL (
    SELECT e.action, e.actor, e.clock
    FROM awa.cron_events AS e
    WHERE e.name IS NULL AND e.action IN ('acquire_leader', 'lose_leader')
      AND e.id < coalesce(elected.id, 9223372036854775807)
    ORDER BY e.id DESC
    LIMIT 1
) AS earlier ON true
LEFT JOIN LATERAL (
    SELECT newest.clock
    FROM (
        SELECT e.id, e.clock, e.action, e.actor
        FROM awa.cron_events AS e
        WHERE e.id < coalesce(elected.id, 9223372036854775807)
        ORDER BY e.id DESC
        LIMIT $3::bigint
    ) AS newest
    WHERE newest.action = 'atomic_enqueue' AND newest.actor = earlier.actor
    ORDER BY newest.id DESC
    LIMIT 1
) AS sign ON true
