-- NoteNext(i): write back what a pass has found of schedules that have nothing due. It is derived, so no event tells
-- of it. A name that does not come back has changed since, or somebody holds its row; the next pass reads it anew.
-- $1 names and $2 to $6 of each, as read, last_enqueued_at, cron_expr, timezone, missed_fire_policy, anchored_at;
-- $7 the next fires
WITH noted AS MATERIALIZED (
    SELECT n.*
    FROM unnest(  -- as in atomic_enqueue, the planner is not to see how many there are
        (SELECT $1::text[]), (SELECT $2::timestamptz[]), (SELECT $3::text[]), (SELECT $4::text[]),
        (SELECT $5::text[]), (SELECT $6::timestamptz[]), (SELECT $7::timestamptz[])
    ) AS n (name, expected, cron_expr, timezone, policy, anchor, next_fire_at)
), locked AS MATERIALIZED (
    SELECT n.*
    FROM noted AS n JOIN awa.cron_jobs AS c USING (name)
    ORDER BY c.name
    FOR NO KEY UPDATE OF c SKIP LOCKED
)
UPDATE awa.cron_jobs AS c
SET next_fire_at = n.next_fire_at
FROM locked AS n
WHERE c.name = n.name
  AND c.last_enqueued_at IS NOT DISTINCT FROM n.expected                    -- LastAsRead
  AND (c.cron_expr, c.timezone, c.missed_fire_policy, c.anchored_at)
      = (n.cron_expr, n.timezone, n.policy, n.anchor)                       -- DefinedAsRead
RETURNING c.name
