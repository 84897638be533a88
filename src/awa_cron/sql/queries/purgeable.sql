-- How much a purge would delete: all that is old enough, as purge_finished and purge_events choose.
-- $1 jobs done with before, or NULL for none, $2 events recorded before, or NULL for none
SELECT
    (
        SELECT count(*)
        FROM awa.jobs AS j
        WHERE j.state IN ('completed', 'cancelled') AND j.finalized_at < $1::timestamptz
    ) AS jobs,
    (
        SELECT count(*)
        FROM awa.cron_events AS e
        WHERE e.id < coalesce(
            (SELECT min(y.id) FROM awa.cron_events AS y WHERE y.recorded_at >= $2::timestamptz), 9223372036854775807
        )
          AND $2::timestamptz IS NOT NULL
          AND (e.action <> 'remove' OR e.last_enqueued_at IS NULL OR EXISTS (
              SELECT 1
              FROM awa.cron_events AS o
              WHERE o.action = 'remove' AND o.name = e.name
                AND (o.last_enqueued_at, o.id) > (e.last_enqueued_at, e.id)
          ))
          AND (e.action <> 'acquire_leader' OR EXISTS (
              SELECT 1 FROM awa.cron_events AS o WHERE o.name IS NULL AND o.action = 'acquire_leader' AND o.id > e.id
          ))
    ) AS events
