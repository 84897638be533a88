-- Names that begin in a way, for completion.
-- $1 schedules or queues, $2 beginning
SELECT DISTINCT n.name
FROM (
    SELECT c.name FROM awa.cron_jobs AS c WHERE $1::text = 'schedules'
    UNION ALL
    SELECT c.queue FROM awa.cron_jobs AS c WHERE $1::text = 'queues'
    UNION ALL
    SELECT q.queue FROM awa.queue_meta AS q WHERE $1::text = 'queues'
) AS n
WHERE starts_with(n.name, $2::text)
ORDER BY n.name
LIMIT 200
