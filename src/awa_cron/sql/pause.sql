-- Pause(s): stop automatic fires. Nothing but the pause changes; a schedule that is paused keeps its first label.
-- $1 name, $2 label, $3 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::timestamptz, statement_timestamp()) AS now
), target AS MATERIALIZED (
    SELECT c.name FROM awa.cron_jobs AS c WHERE c.name = $1::text FOR NO KEY UPDATE
), paused AS (
    UPDATE awa.cron_jobs AS c
    SET paused_at = clock.now, paused_by = $2::text
    FROM target, clock
    WHERE c.name = target.name
      AND c.paused_at IS NULL  -- Unpaused
    RETURNING c.name, c.last_enqueued_at
), event AS (
    INSERT INTO awa.cron_events (clock, action, name, actor, last_enqueued_at)
    SELECT clock.now, 'pause', p.name, $2::text, p.last_enqueued_at
    FROM paused AS p, clock
)
SELECT EXISTS (SELECT 1 FROM paused) AS changed
FROM target
