-- AtomicEnqueue(i): mark every schedule of a pass and insert its jobs in one statement: both happen or neither.
-- A name that comes back has its jobs. A name that does not has lost a race (CASFail): another leader was first, an
-- operator paused, edited or removed it, or somebody holds its row just now; nothing of it was touched.
-- Schedules that differ only in their names and anchors share what else is said of them, as a cohort. $1 names, and of
-- each $2 anchored_at, as read, and $3 the number of its cohort, from 1; of each cohort, as read, $4 last_enqueued_at,
-- $5 cron_expr, $6 timezone, $7 missed_fire_policy, then $8 the clock of the read, for the event, and $9 the fire that
-- follows the last; $10 and $11 the frozen fires, each after the number of its cohort; $12 actor, $13 clock, or NULL for
-- the database's own. Instants ($2, $4, $8, $9, $11) are their places in $14, since many are the same.
WITH clock AS MATERIALIZED (
    SELECT coalesce($13::timestamptz, statement_timestamp()) AS now
), frozen AS MATERIALIZED (
    SELECT f.number, min(f.fire) AS first_fire, max(f.fire) AS last_fire, array_agg(f.fire ORDER BY f.fire) AS fires
    FROM (
        SELECT n.number, (SELECT $14::timestamptz[])[n.fire] AS fire
        FROM unnest((SELECT $10::bigint[]), (SELECT $11::integer[])) AS n (number, fire)
    ) AS f
    GROUP BY f.number
), cohort AS MATERIALIZED (
    -- The plan is to be the same for one schedule and for thousands of a million. Behind a SELECT the planner cannot
    -- see how long an array is, so it looks each row up by its name and never reads the whole table; and a FULL join,
    -- here and below, where both sides hold the same, is never made by comparing all with all.
    SELECT
        number, k.cron_expr, k.timezone, k.policy, f.first_fire, f.last_fire, f.fires,
        (SELECT $14::timestamptz[])[k.expected] AS expected,
        (SELECT $14::timestamptz[])[k.next_fire_at] AS next_fire_at,
        (SELECT $14::timestamptz[])[k.read_at] AS read_at
    FROM unnest(
        (SELECT $4::integer[]), (SELECT $5::text[]), (SELECT $6::text[]), (SELECT $7::text[]), (SELECT $8::integer[]),
        (SELECT $9::integer[])
    ) WITH ORDINALITY AS k (expected, cron_expr, timezone, policy, read_at, next_fire_at, number)
    FULL JOIN frozen AS f USING (number)
), batch AS MATERIALIZED (
    SELECT b.name, (SELECT $14::timestamptz[])[b.anchor] AS anchor, k.*
    FROM unnest((SELECT $1::text[]), (SELECT $2::integer[]), (SELECT $3::bigint[])) AS b (name, anchor, number)
    FULL JOIN cohort AS k USING (number)
), locked AS MATERIALIZED (
    -- Every statement locks rows in the order of their names, so none waits in a circle; a row that is held is
    -- left for the next pass, so none waits at all.
    SELECT b.*, c.ctid AS found_at
    FROM batch AS b JOIN awa.cron_jobs AS c USING (name)
    ORDER BY c.name
    FOR NO KEY UPDATE OF c SKIP LOCKED
), mark AS (
    UPDATE awa.cron_jobs AS c
    SET last_enqueued_at = b.last_fire, next_fire_at = b.next_fire_at, updated_at = clock.now
    FROM locked AS b, clock
    WHERE c.ctid = b.found_at AND c.name = b.name  -- not looked up again; one that has moved meanwhile lost a race
      AND c.last_enqueued_at IS NOT DISTINCT FROM b.expected                 -- LastAsRead
      AND (c.cron_expr, c.timezone, c.missed_fire_policy, c.anchored_at)
          = (b.cron_expr, b.timezone, b.policy, b.anchor)                    -- DefinedAsRead
      AND c.paused_at IS NULL                                                -- Unpaused
      AND (c.last_enqueued_at IS NULL OR b.first_fire > c.last_enqueued_at)  -- Advances
      AND b.first_fire > c.anchored_at                                       -- AfterAnchor
      AND b.last_fire <= clock.now                                           -- AlreadyDue
    RETURNING c.*, b.fires, b.expected, b.read_at
), enqueued AS (
    INSERT INTO awa.jobs (
        kind, queue, args, priority, max_attempts, tags, metadata, run_at, created_at, deadline_s
    )
    SELECT
        m.kind, m.queue, m.args, m.priority, m.max_attempts, m.tags,
        m.metadata || jsonb_build_object(
            'cron_name', m.name,
            'cron_fire_time', to_char(f.fire AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ),
        clock.now, clock.now, m.deadline_s
    FROM mark AS m CROSS JOIN LATERAL unnest(m.fires) AS f (fire), clock
    ORDER BY f.fire, m.name
    RETURNING id, metadata ->> 'cron_name' AS name
), made AS (
    SELECT e.name, array_agg(e.id ORDER BY e.id) AS job_ids
    FROM enqueued AS e
    GROUP BY e.name
)
INSERT INTO awa.cron_events (clock, action, name, actor, fires, job_ids, last_enqueued_at, details)
SELECT
    clock.now, 'atomic_enqueue', m.name, $12::text, m.fires, made.job_ids, m.last_enqueued_at,
    jsonb_build_object('expected', m.expected, 'read_at', m.read_at)
FROM mark AS m FULL JOIN made USING (name), clock
ORDER BY m.name
RETURNING name, job_ids
