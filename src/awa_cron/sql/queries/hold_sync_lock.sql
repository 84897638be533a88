-- Until the transaction ends, nobody else adds or removes schedules. A process that freezes in the middle of it must
-- not hold the others up for long.
-- $1 lock key
SELECT
    set_config('idle_in_transaction_session_timeout', '10s', true),
    pg_advisory_xact_lock($1::bigint)
