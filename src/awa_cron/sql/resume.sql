-- Resume(s): let automatic fires go on. Nothing but the pause changes; the policy decides what was missed.
-- $1 name, $2 label, $3 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::timestamptz, statement_timestamp()) AS now
), target AS MATERIALIZED (
    SELECT c.name FROM awa.cron_jobs AS c WHERE c.name = $1::text FOR NO KEY UPDATE
), resumed AS (
    UPDATE awa.cron_jobs AS c
    SET paused_at = NULL, paused_by = NULL
    FROM target
    WHERE c.name = target.name
      AND c.paused_at IS NOT NULL  -- Paused
    RETURNING c.name, c.last_enqueued_at
), event AS (
    INSERT INTO awa.cron_events (clock, action, name, actor, last_enqueued_at)
    SELECT clock.now, 'resume', r.name, $2::text, r.last_enqueued_at
    FROM resumed AS r, clock
)
SELECT EXISTS (SELECT 1 FROM resumed) AS changed
FROM target
