-- RetryDead(j): a dead job begins a second life of so many attempts, unless that would exceed the limit. `attempt`
-- goes on from where it stood, so that no late outcome of the first life fits.
-- $1 jobs, $2 schedule, $3 kind, $4 queue, each or NULL for any; $5 died before, or NULL; $6 attempts, $7 label,
-- $8 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($8::timestamptz, statement_timestamp()) AS now
), dead AS MATERIALIZED (
    SELECT j.id
    FROM awa.jobs AS j
    WHERE j.state = 'failed'
      AND ($1::bigint[] IS NULL OR j.id = ANY ($1::bigint[]))
      AND ($2::text IS NULL OR j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' = $2::text)
      AND ($3::text IS NULL OR j.kind = $3::text)
      AND ($4::text IS NULL OR j.queue = $4::text)
      AND ($5::timestamptz IS NULL OR j.finalized_at < $5::timestamptz)
      AND j.attempt + $6::integer <= 1000
    ORDER BY j.id
    FOR NO KEY UPDATE
), revived AS (
    UPDATE awa.jobs AS j
    SET state = 'available', max_attempts = j.attempt + $6::integer, run_at = clock.now, finalized_at = NULL
    FROM dead AS d, clock
    WHERE j.id = d.id
    RETURNING j.id
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT clock.now, 'retry_dead', $7::text, jsonb_build_object('jobs', (SELECT count(*) FROM revived))
    FROM clock
    WHERE EXISTS (SELECT 1 FROM revived)
)
SELECT r.id FROM revived AS r ORDER BY r.id
