-- PurgeDead(j): delete dead jobs, for good.
-- $1 jobs, $2 schedule, $3 kind, $4 queue, each or NULL for any; $5 died before, or NULL; $6 label,
-- $7 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($7::timestamptz, statement_timestamp()) AS now
), purged AS (
    DELETE FROM awa.jobs AS j
    WHERE j.state = 'failed'
      AND ($1::bigint[] IS NULL OR j.id = ANY ($1::bigint[]))
      AND ($2::text IS NULL OR j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' = $2::text)
      AND ($3::text IS NULL OR j.kind = $3::text)
      AND ($4::text IS NULL OR j.queue = $4::text)
      AND ($5::timestamptz IS NULL OR j.finalized_at < $5::timestamptz)
    RETURNING j.id
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT clock.now, 'purge_dead', $6::text, jsonb_build_object('jobs', (SELECT count(*) FROM purged))
    FROM clock
    WHERE EXISTS (SELECT 1 FROM purged)
)
SELECT p.id FROM purged AS p ORDER BY p.id
