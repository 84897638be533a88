-- Submit(q, n): a job made by hand, of no schedule, whatever is paused. Inside the caller's transaction it comes with
-- the commit, or not at all.
-- $1 kind, $2 queue, $3 args as JSON, $4 priority, $5 max_attempts, $6 tags, $7 metadata as JSON,
-- $8 earliest time, or NULL for now, $9 seconds that an attempt may take, or NULL,
-- $10 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($10::timestamptz, statement_timestamp()) AS now
)
INSERT INTO awa.jobs AS j (
    kind, queue, args, state, priority, max_attempts, tags, metadata, run_at, created_at, deadline_s
)
SELECT
    $1::text, $2::text, $3::jsonb, CASE WHEN $8::timestamptz > clock.now THEN 'scheduled' ELSE 'available' END,
    $4::smallint, $5::smallint, $6::text[], $7::jsonb, coalesce($8::timestamptz, clock.now), clock.now, $9::float8
FROM clock
RETURNING
    j.id, j.kind, j.queue, j.args::text AS args, j.state, j.priority, j.attempt, j.max_attempts,
    awa.readable(j.run_at) AS run_at, awa.readable(j.created_at) AS created_at, j.tags, j.metadata::text AS metadata,
    j.deadline_s
