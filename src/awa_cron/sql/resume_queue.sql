-- ResumeQueue(q): hand out its jobs again, in their order. Workers are woken.
-- $1 queue, $2 label, $3 channel of jobs, $4 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($4::timestamptz, statement_timestamp()) AS now
), resumed AS (
    UPDATE awa.queue_meta AS q
    SET paused_at = NULL, paused_by = NULL
    WHERE q.queue = $1::text
      AND q.paused_at IS NOT NULL  -- Paused
    RETURNING q.queue
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT clock.now, 'resume_queue', $2::text, jsonb_build_object('queue', r.queue)
    FROM resumed AS r, clock
)
SELECT EXISTS (SELECT 1 FROM resumed) AS changed, (SELECT pg_notify($3::text, r.queue) FROM resumed AS r) AS woken
