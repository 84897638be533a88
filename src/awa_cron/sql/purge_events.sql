-- PurgeEvents(s), for each: delete what was recorded before a time, in one page of the log, and never beyond the first
-- event that is younger: what is left has no holes. Of the removals of a name the one that tells most is kept, since
-- a sync asks it; and the last election, which tells who leads.
-- $1 time, $2 id that the page follows, $3 size of the page, $4 label, $5 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), page AS MATERIALIZED (
    SELECT e.id, e.action, e.name, e.last_enqueued_at, e.recorded_at
    FROM awa.cron_events AS e
    WHERE e.id > $2::bigint
    ORDER BY e.id
    LIMIT $3::bigint
), young AS MATERIALIZED (
    SELECT min(p.id) AS id FROM page AS p WHERE p.recorded_at >= $1::timestamptz
), purged AS (
    DELETE FROM awa.cron_events AS e
    USING page AS p, young AS y
    WHERE e.id = p.id
      AND e.id > $2::bigint AND e.id <= (SELECT max(o.id) FROM page AS o)  -- so that no plan reads the whole table
      AND (y.id IS NULL OR p.id < y.id)
      AND (p.action <> 'remove' OR p.last_enqueued_at IS NULL OR EXISTS (
          SELECT 1
          FROM awa.cron_events AS o
          WHERE o.action = 'remove' AND o.name = p.name
            AND (o.last_enqueued_at, o.id) > (p.last_enqueued_at, p.id)
      ))  -- FloorKept
      AND (p.action <> 'acquire_leader' OR EXISTS (
          SELECT 1 FROM awa.cron_events AS o WHERE o.name IS NULL AND o.action = 'acquire_leader' AND o.id > p.id
      ))
    RETURNING e.id
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT clock.now, 'purge_events', $4::text, jsonb_build_object('events', (SELECT count(*) FROM purged))
    FROM clock
    WHERE EXISTS (SELECT 1 FROM purged)
)
SELECT
    coalesce(max(p.id), $2::bigint) AS last,
    (SELECT count(*) FROM purged) AS purged,
    count(*) > 0 AND (SELECT y.id IS NULL FROM young AS y) AS more
FROM page AS p
