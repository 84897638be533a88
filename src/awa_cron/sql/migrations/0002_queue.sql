-- What the queue needs beside the jobs themselves: how long an attempt may take, and the dead.

ALTER TABLE awa.cron_jobs ADD COLUMN deadline_s double precision
    CHECK (deadline_s > 0 AND deadline_s < 'Infinity');
ALTER TABLE awa.jobs ADD COLUMN deadline_s double precision
    CHECK (deadline_s > 0 AND deadline_s < 'Infinity');

COMMENT ON COLUMN awa.jobs.deadline_s IS 'Seconds that one attempt may take; NULL for no limit';

-- The dead stay where they are, so that none can be in two tables or in neither (spec/decisions/0012-dead-jobs.md).
CREATE INDEX jobs_failed ON awa.jobs (finalized_at, id) WHERE state = 'failed';

CREATE VIEW awa.jobs_dead AS
SELECT
    j.id, j.kind, j.queue, j.args, j.priority, j.attempt, j.max_attempts, j.run_at, j.attempted_at, j.attempted_by,
    j.finalized_at AS died_at, j.created_at, j.errors, j.metadata, j.tags, j.deadline_s
FROM awa.jobs AS j
WHERE j.state = 'failed';

COMMENT ON VIEW awa.jobs_dead IS 'Jobs that have used up their attempts, with the error of each';
