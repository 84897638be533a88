-- Where a verification begins, and who leads.
-- $1 time from which on events were recorded, or NULL for all, $2 lock key, $3 clock, or NULL for the database's own
SELECT
    -- A standby knows what has happened up to where it is; what is due since then is not late.
    coalesce($3::timestamptz, CASE
        WHEN NOT pg_is_in_recovery() THEN statement_timestamp()
        ELSE least(statement_timestamp(), coalesce(pg_last_xact_replay_timestamp(), log.newest))
    END) AS now,
    -- Identities begin with 1; where that one is gone, more may be. Where all are, the sequence knows that they were.
    CASE
        WHEN log.first_event IS NOT NULL THEN log.first_event = 1 AND NOT log.purged
        WHEN has_sequence_privilege(identity.sequence, 'SELECT') THEN pg_sequence_last_value(identity.sequence) IS NULL
        ELSE false
    END AS complete,
    -- Removals and the last election are kept longer than others: what was around those before the oldest other is lost.
    coalesce(log.first_other, log.last_event + 1, 1) AS kept_from,
    greatest(
        coalesce(log.first_other, log.last_event + 1, 1),
        CASE WHEN $1::timestamptz IS NOT NULL THEN coalesce(log.first_since, log.last_event + 1, 1) END
    ) AS first_event,
    log.oldest,
    CASE WHEN pg_is_in_recovery() THEN 'a standby does not know who leads' ELSE (
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
                AND held.pid::text = l.details ->> 'backend_pid'
          )
        ORDER BY l.id DESC
        LIMIT 1
    ) END AS leader
FROM (
    SELECT
        min(e.id) AS first_event,
        max(e.id) AS last_event,
        min(e.id) FILTER (WHERE e.action NOT IN ('remove', 'acquire_leader')) AS first_other,
        bool_or(e.action = 'purge_events') AS purged,
        max(e.recorded_at) AS newest,
        min(e.id) FILTER (WHERE e.recorded_at >= $1::timestamptz) AS first_since,
        min(e.recorded_at) FILTER (WHERE e.action NOT IN ('remove', 'acquire_leader')) AS oldest
    FROM awa.cron_events AS e
) AS log
CROSS JOIN (SELECT pg_get_serial_sequence('awa.cron_events', 'id')::regclass AS sequence) AS identity
