-- ReadCronState(i): the clock and the schedules that may fire, from one statement. Paused rows are skipped here to
-- save work; atomic_enqueue is what holds them back. Where there is none, one row brings the clock alone.
-- $1 clock, or NULL for the database's own
SELECT
    clock.now,
    c.name,
    c.cron_expr,
    c.timezone,
    c.missed_fire_policy,
    awa.readable(c.last_enqueued_at) AS last_enqueued_at,
    awa.readable(c.anchored_at) AS anchored_at,
    c.paused_at
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) AS clock
LEFT JOIN awa.cron_jobs AS c
    ON c.paused_at IS NULL  -- Unpaused
