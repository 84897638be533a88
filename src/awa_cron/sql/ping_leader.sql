-- PingLeader(i): does this very backend still hold the lock? A connection that answers proves nothing by itself:
-- behind a transaction pooler another backend may be answering.
-- $1 lock key
SELECT
    pg_backend_pid() AS backend_pid,
    EXISTS (
        SELECT 1
        FROM pg_locks AS l
        WHERE l.locktype = 'advisory'
          AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
          AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint
          AND l.objsubid = 1
          AND l.granted
          AND l.pid = pg_backend_pid()  -- HoldsLock
    ) AS holds_lock
