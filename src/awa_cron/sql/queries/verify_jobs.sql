-- Where the jobs are not those of the log: jobs without an event, events without a job, jobs with another label.
-- $1 name, or NULL for all, $2 first event of the log, $3 time before which a job's event may be gone, or NULL
SELECT
    CASE
        WHEN made.job_id IS NULL THEN 'no event'
        WHEN job.id IS NULL THEN 'no job'
        ELSE 'label'
    END AS problem,
    coalesce(made.name, job.name) AS name,
    made.event,
    made.fire,
    coalesce(made.job_id, job.id) AS job_id,
    job.name AS label_name,
    job.fire AS label_fire,
    job.automatic
FROM (
    SELECT e.id AS event, e.name, e.action, made.job_id, made.fire
    FROM awa.cron_events AS e CROSS JOIN LATERAL unnest(e.job_ids, e.fires) AS made (job_id, fire)
    WHERE made.job_id IS NOT NULL AND e.name IS NOT NULL AND ($1::text IS NULL OR e.name = $1::text)
) AS made
FULL JOIN (
    SELECT
        j.id, j.created_at, j.metadata ->> 'cron_name' AS name, j.metadata ->> 'cron_fire_time' AS fire,
        j.metadata ? 'cron_fire_time' AS automatic
    FROM awa.jobs AS j
    WHERE j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' IS NOT NULL
      AND (j.metadata ? 'cron_fire_time' OR j.metadata ? 'cron_triggered_at')
      AND ($1::text IS NULL OR j.metadata ->> 'cron_name' = $1::text)
) AS job ON job.id = made.job_id
WHERE CASE
    WHEN made.job_id IS NULL THEN $3::timestamptz IS NULL OR job.created_at > $3::timestamptz
    WHEN made.event < $2::bigint THEN false
    WHEN job.id IS NULL THEN true
    ELSE (made.name, to_char(made.fire AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
         IS DISTINCT FROM (job.name, job.fire)
END
ORDER BY job_id
