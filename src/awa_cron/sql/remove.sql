-- Remove(s): delete the schedule. Its jobs stay. The event keeps how far it had come.
-- $1 name, $2 lock key, $3 label, $4 clock, or NULL for the database's own
WITH serial AS MATERIALIZED (
    SELECT pg_advisory_xact_lock($2::bigint)
), clock AS MATERIALIZED (
    SELECT coalesce($4::timestamptz, statement_timestamp()) AS now
), removed AS (
    DELETE FROM awa.cron_jobs AS c
    USING serial
    WHERE c.name = $1::text
    RETURNING c.name, c.cron_expr, c.timezone, c.last_enqueued_at
)
INSERT INTO awa.cron_events (clock, action, name, actor, last_enqueued_at, details)
SELECT
    clock.now, 'remove', r.name, $3::text, r.last_enqueued_at,
    jsonb_build_object('cron_expr', r.cron_expr, 'timezone', r.timezone)
FROM removed AS r, clock
RETURNING name
