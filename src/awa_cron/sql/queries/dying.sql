-- How many jobs are dead, counted up to a limit, and how many of the newest jobs of some schedules died one after
-- the other; jobs that are not done, and cancelled ones, are passed over.
-- $1 names, $2 the most dead jobs that are counted, $3 how many of the newest jobs of each are looked at
SELECT
    (SELECT count(*) FROM (SELECT FROM awa.jobs AS j WHERE j.state = 'failed' LIMIT $2::bigint) AS dead) AS dead,
    ARRAY(
        SELECT (
            SELECT count(*) FILTER (WHERE done.state = 'failed' AND done.lived = 0)
            FROM (
                SELECT newest.state, count(*) FILTER (WHERE newest.state = 'completed') OVER (ORDER BY newest.id DESC) AS lived
                FROM (
                    SELECT j.id, j.state FROM awa.jobs AS j
                    WHERE j.metadata ? 'cron_name' AND j.metadata ->> 'cron_name' = named.name
                    ORDER BY j.id DESC
                    LIMIT $3::bigint
                ) AS newest
            ) AS done
        )
        FROM unnest($1::text[]) WITH ORDINALITY AS named (name, place)
        ORDER BY named.place
    ) AS runs
