-- AtomicEnqueue(i): mark every schedule of a pass and insert its jobs in one statement: both happen or neither.
-- A name that comes back has its jobs. A name that does not has lost a race (CASFail): another leader was first, an
-- operator paused, edited or removed it, or somebody holds its row just now; nothing of it was touched.
-- $1 names and $2 to $6 of each, as read, last_enqueued_at, cron_expr, timezone, missed_fire_policy, anchored_at;
-- $7 and $8 the frozen fires, each after the number of its name, from 1; $9 actor, $10 clock, or NULL for the
-- database's own, $11 the clock that each was read with, for the event, $12 the fire that follows the last of each.
-- Many rows share few instants: $2, $6, $8, $11 and $12 are their places in $13.
WITH clock AS MATERIALIZED (
    SELECT coalesce($10::timestamptz, statement_timestamp()) AS now
), frozen AS MATERIALIZED (
    SELECT f.number, min(f.fire) AS first_fire, max(f.fire) AS last_fire, array_agg(f.fire ORDER BY f.fire) AS fires
    FROM (
        SELECT n.number, (SELECT $13::timestamptz[])[n.fire] AS fire
        FROM unnest((SELECT $7::bigint[]), (SELECT $8::integer[])) AS n (number, fire)
    ) AS f
    GROUP BY f.number
), batch AS MATERIALIZED (
    -- The plan is to be the same for one schedule and for thousands of a million. Behind a SELECT the planner cannot
    -- see how long an array is, so it looks each row up by its name and never reads the whole table; and a FULL join,
    -- here and below, where both sides hold the same names, is never made by comparing all with all.
    SELECT
        b.name, b.cron_expr, b.timezone, b.policy, f.first_fire, f.last_fire, f.fires,
        (SELECT $13::timestamptz[])[b.expected] AS expected,
        (SELECT $13::timestamptz[])[b.anchor] AS anchor,
        (SELECT $13::timestamptz[])[b.read_at] AS read_at,
        (SELECT $13::timestamptz[])[b.next_fire_at] AS next_fire_at
    FROM unnest(
        (SELECT $1::text[]), (SELECT $2::integer[]), (SELECT $3::text[]), (SELECT $4::text[]),
        (SELECT $5::text[]), (SELECT $6::integer[]), (SELECT $11::integer[]), (SELECT $12::integer[])
    ) WITH ORDINALITY AS b (name, expected, cron_expr, timezone, policy, anchor, read_at, next_fire_at, number)
    FULL JOIN frozen AS f USING (number)
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
    clock.now, 'atomic_enqueue', m.name, $9::text, m.fires, made.job_ids, m.last_enqueued_at,
    jsonb_build_object('expected', m.expected, 'read_at', m.read_at)
FROM mark AS m FULL JOIN made USING (name), clock
ORDER BY m.name
RETURNING name, job_ids
