-- Instants that have two jobs, and jobs that two events have made.
-- $1 name, or NULL for all
SELECT 'instant' AS problem, j.metadata ->> 'cron_name' AS name, j.metadata ->> 'cron_fire_time' AS what,
    array_agg(j.id ORDER BY j.id) AS jobs, '{}'::bigint[] AS events
FROM awa.jobs AS j
WHERE j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' IS NOT NULL AND j.metadata ? 'cron_fire_time'
  AND ($1::text IS NULL OR j.metadata ->> 'cron_name' = $1::text)
GROUP BY 2, 3
HAVING count(*) > 1
UNION ALL
SELECT 'job', min(e.name), made.job_id::text, ARRAY[made.job_id], array_agg(e.id ORDER BY e.id)
FROM awa.cron_events AS e CROSS JOIN LATERAL unnest(e.job_ids) AS made (job_id)
WHERE e.name IS NOT NULL AND ($1::text IS NULL OR e.name = $1::text)
GROUP BY made.job_id
HAVING count(*) > 1
ORDER BY name, jobs
