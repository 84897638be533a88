-- PurgeFinished(j), for each: delete what was done with before a time, in one page of the table. The dead are not
-- done with. Jobs are numbered as they are made: where a whole page is younger, nothing older follows.
-- $1 time, $2 id that the page follows, $3 size of the page, $4 label, $5 clock, or NULL for the database's own
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::timestamptz, statement_timestamp()) AS now
), page AS MATERIALIZED (
    SELECT j.id, j.created_at FROM awa.jobs AS j WHERE j.id > $2::bigint ORDER BY j.id LIMIT $3::bigint
), purged AS (
    DELETE FROM awa.jobs AS j
    USING page AS p
    WHERE j.id = p.id
      AND j.id > $2::bigint AND j.id <= (SELECT max(o.id) FROM page AS o)  -- so that no plan reads the whole table
      AND j.state IN ('completed', 'cancelled')  -- DoneWith
      AND j.finalized_at < $1::timestamptz
    RETURNING j.id
), event AS (
    INSERT INTO awa.cron_events (clock, action, actor, details)
    SELECT clock.now, 'purge_finished', $4::text, jsonb_build_object('jobs', (SELECT count(*) FROM purged))
    FROM clock
    WHERE EXISTS (SELECT 1 FROM purged)
)
SELECT
    coalesce(max(p.id), $2::bigint) AS last,
    (SELECT count(*) FROM purged) AS purged,
    coalesce(bool_or(p.created_at < $1::timestamptz), false) AS more
FROM page AS p
