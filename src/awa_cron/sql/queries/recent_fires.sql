-- How many fires have become jobs lately, and how late; the clock; how far the log has come.
-- $1 how many of the newest events are looked at, $2 seconds
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
)
SELECT
    statement_timestamp() AS now, (SELECT max(id) FROM newest) AS last_event_id,
    (SELECT max(recorded_at) FROM newest) AS last_event_at, count(*) AS fires,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY late.seconds) AS p50_s,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY late.seconds) AS p99_s, max(late.seconds) AS max_s
FROM late
