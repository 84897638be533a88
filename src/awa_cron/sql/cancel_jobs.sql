-- CancelJobs(s, running): cancel what carries a schedule's name and has not begun, be the schedule there or not; if
-- asked for, also what runs, whose workers are told to look.
-- $1 name, $2 whether also what runs, $3 channel of cancellations, $4 label, $5 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), found AS MATERIALIZED (
    SELECT j.id, j.state
    FROM awa.jobs AS j
    WHERE j.metadata ? 'cron_name'
      AND j.metadata ->> 'cron_name' = $1::text
      AND j.state IN ('scheduled', 'available', 'retryable', 'running')
    ORDER BY j.id
    FOR NO KEY UPDATE
), cancelled AS (
    UPDATE awa.jobs AS j
    SET state = 'cancelled', finalized_at = clock.now
    FROM found AS f, clock
    WHERE j.id = f.id
      AND (f.state <> 'running' OR $2::boolean)
    RETURNING j.id, f.state = 'running' AS ran
), counted AS MATERIALIZED (
    SELECT
        count(*) FILTER (WHERE NOT c.ran) AS waiting,
        count(*) FILTER (WHERE c.ran) AS signalled,
        (SELECT count(*) FROM found AS f WHERE f.state = 'running') AS ran
    FROM cancelled AS c
), event AS (
    INSERT INTO awa.cron_events (clock, action, name, actor, details)
    SELECT
        clock.now, 'cancel_jobs', $1::text, $4::text,
        jsonb_build_object('waiting', n.waiting, 'signalled', n.signalled)
    FROM counted AS n, clock
    WHERE n.waiting + n.signalled > 0
)
SELECT
    n.waiting, n.signalled, n.ran - n.signalled AS running,
    EXISTS (SELECT 1 FROM awa.cron_jobs AS c WHERE c.name = $1::text)
        OR EXISTS (
            SELECT 1 FROM awa.jobs AS j WHERE j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' = $1::text
        ) AS known,
    CASE WHEN n.signalled > 0 THEN pg_notify($3::text, '') END AS told
FROM counted AS n
