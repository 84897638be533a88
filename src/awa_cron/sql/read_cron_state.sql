-- ReadCronState(i): the clock and a page of the schedules that may fire, from one statement. Paused rows are skipped
-- here to save work; atomic_enqueue is what holds them back. Where there is none, one row brings the clock alone.
-- Schedules that differ only in their names and anchors come together, with their places on the page: many of them then
-- cost little more than one.
-- $1 clock, or NULL for the database's own; $2 which: those whose next fire is due, those whose next fire is unknown,
-- or all; $3 and $4 next_fire_at and name of the row that the page follows (with '-infinity' and '' it is the first),
-- $5 the most rows, or NULL. Behind a SELECT the planner cannot see what they are, so it keeps the first plan, and a
-- pass over a million schedules is not planned anew each second.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), page AS (
    (
        SELECT c.* FROM awa.cron_jobs AS c
        WHERE (SELECT $2::text) = 'due'
          AND c.paused_at IS NULL  -- Unpaused
          AND c.next_fire_at <= (SELECT now FROM clock)
          AND (c.next_fire_at, c.name) > ((SELECT $3::timestamptz), (SELECT $4::text))
        ORDER BY c.next_fire_at, c.name LIMIT (SELECT $5::bigint)
    ) UNION ALL (
        SELECT c.* FROM awa.cron_jobs AS c
        WHERE (SELECT $2::text) = 'unknown'
          AND c.paused_at IS NULL AND c.next_fire_at IS NULL AND c.name > (SELECT $4::text)
        ORDER BY c.name LIMIT (SELECT $5::bigint)
    ) UNION ALL (
        SELECT c.* FROM awa.cron_jobs AS c
        WHERE (SELECT $2::text) = 'all'
          AND c.paused_at IS NULL AND c.name > (SELECT $4::text)
        ORDER BY c.name LIMIT (SELECT $5::bigint)
    )
)
SELECT
    clock.now,
    array_agg(c.name) AS names,
    array_agg(awa.readable(c.anchored_at)) AS anchors,
    array_agg(c.place) AS places,
    c.cron_expr,
    c.timezone,
    c.missed_fire_policy,
    awa.readable(c.last_enqueued_at) AS last_enqueued_at,
    c.paused_at,
    awa.readable(c.next_fire_at) AS next_fire_at
FROM clock LEFT JOIN (SELECT page.*, row_number() OVER () AS place FROM page) AS c ON true
GROUP BY
    clock.now, c.cron_expr, c.timezone, c.missed_fire_policy, c.last_enqueued_at, c.paused_at, c.next_fire_at
