-- PauseQueue(q): hand out no more of its jobs. They go on being made; a queue that is paused keeps its first label.
-- $1 queue, $2 label, $3 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::timestamptz, statement_timestamp()) AS now
), paused AS (
    INSERT INTO awa.queue_meta AS q (queue, paused_at, paused_by)
    SELECT $1::text, clock.now, $2::text FROM clock
    ON CONFLICT (queue) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by
    WHERE q.paused_at IS NULL  -- Unpaused
    RETURNING q.queue
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT clock.now, 'pause_queue', $2::text, jsonb_build_object('queue', p.queue)
    FROM paused AS p, clock
)
SELECT EXISTS (SELECT 1 FROM paused) AS changed
