-- Sync(s, d): write the definitions that differ from what is stored; never delete, never touch a pause. An edit of
-- cron_expr or timezone settles first: the fires given for it become jobs of the old definition, and the anchor
-- moves to the clock of the read. A name that does not come back has lost a race and is read again.
-- The transaction must hold the sync lock, taken by an earlier statement: remove holds it too, so this statement
-- sees every removal of a name that it inserts, and its clock is later.
-- $1 definitions as JSON (the columns, row_version as read or null, fires to settle, dropped, the next fire after $2),
-- $2 clock of the read, $3 actor, $4 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($4::timestamptz, statement_timestamp()) AS now
), defined AS MATERIALIZED (
    SELECT d.*
    FROM jsonb_to_recordset($1::jsonb) AS d (
        name text, cron_expr text, timezone text, kind text, queue text, args jsonb, priority smallint,
        max_attempts smallint, tags text[], metadata jsonb, missed_fire_policy text,
        deadline_s double precision, row_version text, fires timestamptz[], dropped jsonb,
        next_fire_at timestamptz
    )
), before AS MATERIALIZED (
    SELECT
        c.*, d.fires,
        (c.cron_expr, c.timezone) IS DISTINCT FROM (d.cron_expr, d.timezone) AS redefined
    FROM awa.cron_jobs AS c JOIN defined AS d USING (name)
    WHERE c.xmin::text = d.row_version                                               -- AsRead
      AND (d.fires = '{}' OR (
              c.paused_at IS NULL                                                    -- Unpaused
              AND (c.last_enqueued_at IS NULL OR d.fires[1] > c.last_enqueued_at)    -- Advances
              AND d.fires[1] > c.anchored_at                                         -- AfterAnchor
              AND d.fires[cardinality(d.fires)] <= $2::timestamptz                   -- AlreadyDue
          ))
    ORDER BY c.name
    FOR NO KEY UPDATE OF c SKIP LOCKED
), updated AS (
    UPDATE awa.cron_jobs AS c
    SET cron_expr = d.cron_expr, timezone = d.timezone, kind = d.kind, queue = d.queue, args = d.args,
        priority = d.priority, max_attempts = d.max_attempts, tags = d.tags, metadata = d.metadata,
        missed_fire_policy = d.missed_fire_policy, deadline_s = d.deadline_s,
        last_enqueued_at = coalesce(b.fires[cardinality(b.fires)], c.last_enqueued_at),
        -- Never back, even if the clock has stepped back: the anchor may stand for a removed schedule's fires.
        anchored_at = CASE WHEN b.redefined THEN greatest($2::timestamptz, c.anchored_at) ELSE c.anchored_at END,
        next_fire_at = CASE WHEN b.redefined THEN d.next_fire_at ELSE c.next_fire_at END,
        updated_at = clock.now
    FROM before AS b JOIN defined AS d USING (name), clock
    WHERE c.name = b.name
    RETURNING c.name, c.last_enqueued_at, c.anchored_at
), inserted AS (
    INSERT INTO awa.cron_jobs (
        name, cron_expr, timezone, kind, queue, args, priority, max_attempts, tags, metadata, missed_fire_policy,
        anchored_at, next_fire_at, created_at, updated_at, deadline_s
    )
    SELECT
        d.name, d.cron_expr, d.timezone, d.kind, d.queue, d.args, d.priority, d.max_attempts, d.tags, d.metadata,
        d.missed_fire_policy, new.anchored_at,
        -- No fire after the anchor comes before the first one after $2, unless the clock has stepped back since.
        CASE WHEN new.anchored_at >= $2::timestamptz THEN d.next_fire_at END,
        clock.now, clock.now, d.deadline_s
    FROM defined AS d CROSS JOIN clock CROSS JOIN LATERAL (
        -- What a removed schedule of this name had enqueued stays enqueued, even if the clock has stepped back.
        SELECT greatest(clock.now, (
            SELECT max(e.last_enqueued_at) FROM awa.cron_events AS e WHERE e.name = d.name AND e.action = 'remove'
        )) AS anchored_at
    ) AS new
    WHERE d.row_version IS NULL  -- Absent
      -- A row that has come into being since the read is a lost race, and nothing to wait for if somebody holds it.
      AND NOT EXISTS (SELECT FROM awa.cron_jobs AS c WHERE c.name = d.name)
    ORDER BY d.name
    ON CONFLICT (name) DO NOTHING
    RETURNING name, anchored_at
), settled AS (
    INSERT INTO awa.jobs (
        kind, queue, args, priority, max_attempts, tags, metadata, run_at, created_at, deadline_s
    )
    SELECT
        b.kind, b.queue, b.args, b.priority, b.max_attempts, b.tags,
        b.metadata || jsonb_build_object(
            'cron_name', b.name,
            'cron_fire_time', to_char(f.fire AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ),
        clock.now, clock.now, b.deadline_s
    FROM before AS b CROSS JOIN LATERAL unnest(b.fires) AS f (fire), clock
    ORDER BY f.fire, b.name
    RETURNING id, metadata ->> 'cron_name' AS name
), made AS (
    SELECT s.name, array_agg(s.id ORDER BY s.id) AS job_ids
    FROM settled AS s
    GROUP BY s.name
), outcome AS (
    SELECT
        u.name,
        CASE WHEN b.redefined THEN 'redefined' ELSE 'updated' END AS change,
        b.fires,
        u.last_enqueued_at,
        u.anchored_at,
        jsonb_build_object('from', jsonb_build_object('cron_expr', b.cron_expr, 'timezone', b.timezone)) AS before
    FROM updated AS u JOIN before AS b USING (name)
    UNION ALL
    SELECT i.name, 'inserted', '{}', NULL, i.anchored_at, '{}' FROM inserted AS i
)
INSERT INTO awa.cron_events (clock, action, name, actor, fires, job_ids, last_enqueued_at, details)
SELECT
    CASE WHEN o.change = 'redefined' THEN $2::timestamptz ELSE clock.now END,
    'sync', o.name, $3::text, o.fires, coalesce(made.job_ids, '{}'), o.last_enqueued_at,
    o.before || jsonb_strip_nulls(jsonb_build_object(
        'change', o.change, 'cron_expr', d.cron_expr, 'timezone', d.timezone,
        'missed_fire_policy', d.missed_fire_policy, 'anchored_at', o.anchored_at, 'dropped', d.dropped
    ))
FROM outcome AS o JOIN defined AS d USING (name) LEFT JOIN made USING (name), clock
ORDER BY o.name
RETURNING name, details ->> 'change' AS change, job_ids
