-- The events that tell what became of an instant. Before the first whose clock reaches it, the last of each kind; from
-- that one on all but passes, up to and with the first pass by which the fires reach the instant.
-- $1 name, $2 instant, $3 first event, NULL for none, $4 the most events
WITH reached AS MATERIALIZED (
    SELECT e.id
    FROM awa.cron_events AS e
    WHERE e.name = $1::text
      AND e.id >= $3::bigint
      AND e.action = 'atomic_enqueue'
      AND e.last_enqueued_at >= $2::timestamptz
    ORDER BY e.id
    LIMIT 1
), telling AS (
    SELECT max(e.id) AS id, true AS before
    FROM awa.cron_events AS e
    WHERE e.name = $1::text AND ($3::bigint IS NULL OR e.id < $3::bigint)
    GROUP BY e.action, CASE WHEN e.action = 'sync' THEN e.details ->> 'change' END
    UNION ALL
    (
        SELECT e.id, false
        FROM awa.cron_events AS e
        WHERE e.name = $1::text
          AND e.id >= $3::bigint
          AND e.id <= coalesce((SELECT r.id FROM reached AS r), 9223372036854775807)
          AND e.action IN ('sync', 'pause', 'resume', 'remove')
        ORDER BY e.id
        LIMIT $4::bigint
    )
    UNION ALL
    SELECT r.id, false FROM reached AS r
)
SELECT
    e.id, e.recorded_at, e.clock, e.action, e.name, e.actor, e.fires, e.job_ids,
    awa.readable(e.last_enqueued_at) AS last_enqueued_at, e.details::text AS details, t.before
FROM telling AS t JOIN awa.cron_events AS e USING (id)
ORDER BY e.id
