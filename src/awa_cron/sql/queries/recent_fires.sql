-- How many fires have become jobs lately, and how late; which are overdue; the clock; how far the log has come.
-- $1 how many of the newest events are looked at, $2 seconds of lately, $3 seconds that make overdue
WITH newest AS MATERIALIZED (
    SELECT e.id, e.action, e.clock, e.recorded_at, e.fires
    FROM awa.cron_events AS e
    ORDER BY e.id DESC
    LIMIT $1::bigint
), late AS (
    SELECT extract(epoch FROM n.recorded_at - f.fire)::float8 AS seconds
    FROM newest AS n CROSS JOIN LATERAL unnest(n.fires) AS f (fire)
    WHERE n.action = 'atomic_enqueue'
      AND n.recorded_at > statement_timestamp() - make_interval(secs => $2::float8)
), overdue AS (
    SELECT count(*) AS schedules, min(c.next_fire_at) FILTER (WHERE isfinite(c.next_fire_at)) AS since
    FROM awa.cron_jobs AS c
    WHERE c.paused_at IS NULL AND c.next_fire_at < statement_timestamp() - make_interval(secs => $3::float8)
)
SELECT
    statement_timestamp() AS now, (SELECT schedules FROM overdue) AS overdue,
    (SELECT extract(epoch FROM statement_timestamp() - since)::float8 FROM overdue) AS overdue_s, (SELECT max(id) FROM newest) AS last_event_id,
    (SELECT max(recorded_at) FROM newest) AS last_event_at, count(*) AS fires,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY late.seconds) AS p50_s,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY late.seconds) AS p99_s, max(late.seconds) AS max_s
FROM late
