-- LoseLeader(i): give the lock back on purpose.
-- $1 lock key, $2 actor
WITH release AS MATERIALIZED (
    SELECT pg_advisory_unlock($1::bigint) AS released
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT statement_timestamp(), 'lose_leader', $2::text, jsonb_build_object('backend_pid', pg_backend_pid())
    FROM release
    WHERE released
)
SELECT released FROM release
