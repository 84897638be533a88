-- What sync has to write: the definitions that are absent or stored otherwise, with the row as it stands.
-- $1 definitions as JSON, $2 clock, or NULL for the database's own
SELECT
    coalesce($2::timestamptz, statement_timestamp()) AS now,
    d.name AS defined_name,
    c.xmin::text AS row_version,
    (c.cron_expr, c.timezone) IS DISTINCT FROM (d.cron_expr, d.timezone) AS redefined,
    c.name,
    c.cron_expr,
    c.timezone,
    c.missed_fire_policy,
    awa.readable(c.last_enqueued_at) AS last_enqueued_at,
    awa.readable(c.anchored_at) AS anchored_at,
    awa.readable(c.paused_at) AS paused_at,
    awa.readable(c.next_fire_at) AS next_fire_at
FROM jsonb_to_recordset($1::jsonb) AS d (
    name text, cron_expr text, timezone text, kind text, queue text, args jsonb, priority smallint,
    max_attempts smallint, tags text[], metadata jsonb, missed_fire_policy text, deadline_s double precision
)
LEFT JOIN awa.cron_jobs AS c USING (name)
WHERE c.name IS NULL
   OR (c.cron_expr, c.timezone, c.kind, c.queue, c.args, c.priority, c.max_attempts, c.tags, c.metadata,
       c.missed_fire_policy, c.deadline_s)
      IS DISTINCT FROM
      (d.cron_expr, d.timezone, d.kind, d.queue, d.args, d.priority, d.max_attempts, d.tags, d.metadata,
       d.missed_fire_policy, d.deadline_s)
ORDER BY d.name
