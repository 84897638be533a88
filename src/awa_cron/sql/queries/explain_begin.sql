-- Whether the log goes back to the first event ever, from which event on it is whole (removals and the last
-- election are kept longer than others), and a schedule's first event whose clock reaches an instant: no earlier one can have decided about it.
-- $1 name, $2 instant
SELECT
    coalesce((SELECT e.id FROM awa.cron_events AS e ORDER BY e.id LIMIT 1), 1) = 1
        AND NOT EXISTS (SELECT 1 FROM awa.cron_events AS e WHERE e.name IS NULL AND e.action = 'purge_events') AS complete,
    (
        SELECT e.id FROM awa.cron_events AS e WHERE e.action NOT IN ('remove', 'acquire_leader') ORDER BY e.id LIMIT 1
    ) AS kept_from,
    (SELECT min(e.id) FROM awa.cron_events AS e WHERE e.name = $1::text AND e.clock >= $2::timestamptz) AS first_event
