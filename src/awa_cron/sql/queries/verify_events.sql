-- The log, schedule by schedule, each in the order of its row lock; before it, per schedule, the last event of each
-- kind from before it begins, which together tell the state at its beginning.
-- $1 name, or NULL for all, $2 first event of the log, $3 event from which on all are kept
WITH before AS (
    SELECT DISTINCT ON (e.name, e.action, e.details ->> 'change') e.*
    FROM awa.cron_events AS e
    WHERE e.id < $2::bigint AND e.id >= $3::bigint AND e.name IS NOT NULL AND ($1::text IS NULL OR e.name = $1::text)
    ORDER BY e.name, e.action, e.details ->> 'change', e.id DESC
)
SELECT
    e.id, e.recorded_at, e.clock, e.action, e.name, e.actor, e.fires, e.job_ids,
    awa.readable(e.last_enqueued_at) AS last_enqueued_at, e.details::text AS details, false AS before
FROM awa.cron_events AS e
WHERE e.id >= $2::bigint AND e.name IS NOT NULL AND ($1::text IS NULL OR e.name = $1::text)
UNION ALL
SELECT
    e.id, e.recorded_at, e.clock, e.action, e.name, e.actor, e.fires, e.job_ids,
    awa.readable(e.last_enqueued_at), e.details::text, true
FROM before AS e
ORDER BY name, id
