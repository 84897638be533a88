-- Every queue that a schedule, an unfinished or dead job, or a pause names.
WITH counted AS (
    SELECT
        j.queue,
        count(*) FILTER (WHERE j.state IN ('scheduled', 'available', 'retryable')) AS waiting,
        count(*) FILTER (WHERE j.state = 'running') AS running,
        count(*) FILTER (WHERE j.state = 'failed') AS dead
    FROM awa.jobs AS j
    WHERE j.state IN ('scheduled', 'available', 'retryable', 'running', 'failed')
    GROUP BY j.queue
), scheduled AS (
    SELECT c.queue, count(*) AS schedules FROM awa.cron_jobs AS c GROUP BY c.queue
)
SELECT
    queue AS name, awa.readable(q.paused_at) AS paused_at, q.paused_by, coalesce(s.schedules, 0) AS schedules,
    coalesce(n.waiting, 0) AS waiting, coalesce(n.running, 0) AS running, coalesce(n.dead, 0) AS dead
FROM counted AS n FULL JOIN scheduled AS s USING (queue) FULL JOIN awa.queue_meta AS q USING (queue)
ORDER BY queue
