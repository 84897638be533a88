-- Where a verification begins, and who leads.
-- $1 time from which on events were recorded, or NULL for all, $2 lock key, $3 clock, or NULL for the database's own
SELECT
    coalesce($3::timestamptz, statement_timestamp()) AS now,
    -- Identities begin with 1; where that one is gone, more may be.
    coalesce(min(e.id) = 1, true) AS complete,
    CASE
        WHEN $1::timestamptz IS NULL THEN coalesce(min(e.id), 1)
        ELSE coalesce(min(e.id) FILTER (WHERE e.recorded_at >= $1::timestamptz), max(e.id) + 1, 1)
    END AS first_event,
    -- Removals are kept longer than other events.
    min(e.recorded_at) FILTER (WHERE e.action <> 'remove') AS oldest,
    (
        SELECT l.actor || ' leads since ' || to_char(l.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        FROM awa.cron_events AS l
        WHERE l.action = 'acquire_leader'
          AND EXISTS (
              SELECT 1
              FROM pg_locks AS held
              WHERE held.locktype = 'advisory'
                AND held.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                AND (held.classid::bigint << 32) | held.objid::bigint = $2::bigint
                AND held.objsubid = 1
                AND held.granted
                AND held.pid = (l.details ->> 'backend_pid')::integer
          )
        ORDER BY l.id DESC
        LIMIT 1
    ) AS leader
FROM awa.cron_events AS e
