-- AcquireLeader(i): take the session's advisory lock if it is free, and say which backend took it.
-- $1 lock key, $2 actor
WITH attempt AS MATERIALIZED (
    SELECT pg_try_advisory_lock($1::bigint) AS acquired  -- LockFree
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT statement_timestamp(), 'acquire_leader', $2::text, jsonb_build_object('backend_pid', pg_backend_pid())
    FROM attempt
    WHERE acquired
)
SELECT acquired, pg_backend_pid() AS backend_pid
FROM attempt
