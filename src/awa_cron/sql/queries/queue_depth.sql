-- Unfinished and dead jobs by queue and state, and since when the oldest that may run has waited.
SELECT
    j.queue, j.state, count(*) AS jobs,
    greatest(0, extract(epoch FROM statement_timestamp() - min(j.run_at)))::float8 AS oldest_s
FROM awa.jobs AS j
WHERE j.state IN ('scheduled', 'available', 'retryable', 'running', 'failed')
GROUP BY j.queue, j.state
ORDER BY j.queue, j.state
