-- Which of the newest jobs have begun since an instant: those of a kind in a queue, and all others.
-- $1 kind, $2 queue, $3 instant, $4 how many of the newest are looked at
SELECT
    count(*) FILTER (WHERE (newest.kind, newest.queue) = ($1::text, $2::text)) AS alike,
    count(*) FILTER (WHERE (newest.kind, newest.queue) <> ($1::text, $2::text)) AS others
FROM (
    SELECT j.kind, j.queue, j.attempted_at FROM awa.jobs AS j ORDER BY j.id DESC LIMIT $4::bigint
) AS newest
WHERE newest.attempted_at >= $3::timestamptz
