-- The server process that holds the leader's lock, if there is one, and the clock.
-- $1 lock key
SELECT
    statement_timestamp() AS now,
    (
        SELECT held.pid
        FROM pg_locks AS held
        WHERE held.locktype = 'advisory'
          AND held.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
          AND (held.classid::bigint << 32) | held.objid::bigint = $1::bigint
          AND held.objsubid = 1
          AND held.granted
        LIMIT 1
    ) AS backend_pid
