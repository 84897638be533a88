-- Trigger(s): one job now, paused or not. The schedule's row is read, never written or locked.
-- $1 name, $2 label, $3 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::timestamptz, statement_timestamp()) AS now
), source AS MATERIALIZED (
    SELECT c.* FROM awa.cron_jobs AS c WHERE c.name = $1::text
), triggered AS (
    INSERT INTO awa.jobs (
        kind, queue, args, priority, max_attempts, tags, metadata, run_at, created_at, deadline_s
    )
    SELECT
        s.kind, s.queue, s.args, s.priority, s.max_attempts, s.tags,
        s.metadata || jsonb_build_object(
            'cron_name', s.name,
            'cron_triggered_at', to_char(clock.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
        ),
        clock.now, clock.now, s.deadline_s
    FROM source AS s, clock
    RETURNING *
), event AS (
    INSERT INTO awa.cron_events (clock, action, name, actor, job_ids, last_enqueued_at)
    SELECT clock.now, 'trigger', s.name, $2::text, ARRAY[t.id], s.last_enqueued_at
    FROM triggered AS t, source AS s, clock
)
SELECT
    t.id, t.kind, t.queue, t.args::text AS args, t.state, t.priority, t.attempt, t.max_attempts, t.run_at,
    t.created_at, t.tags, t.metadata::text AS metadata, t.deadline_s
FROM triggered AS t
