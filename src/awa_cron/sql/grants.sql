-- Roles of least privilege: one that evaluates schedules, one that runs jobs, one that reads, one that deletes what is
-- old. Grant them to the roles that log in. Run it again after each migration; it takes nothing away that was granted otherwise.
DO $roles$
BEGIN
    IF to_regrole('awa_evaluate') IS NULL THEN CREATE ROLE awa_evaluate NOLOGIN; END IF;
    IF to_regrole('awa_work') IS NULL THEN CREATE ROLE awa_work NOLOGIN; END IF;
    IF to_regrole('awa_read') IS NULL THEN CREATE ROLE awa_read NOLOGIN; END IF;
    IF to_regrole('awa_purge') IS NULL THEN CREATE ROLE awa_purge NOLOGIN; END IF;
END
$roles$;

GRANT USAGE ON SCHEMA awa TO awa_evaluate, awa_work, awa_read, awa_purge;
GRANT SELECT ON awa.cron_migrations TO awa_evaluate, awa_work, awa_read, awa_purge;

-- Evaluate, as `awa-cron run --no-work` does: register, lead, make jobs. Not pause, remove, or touch a job once made.
GRANT SELECT, INSERT ON awa.cron_jobs, awa.cron_events TO awa_evaluate;
GRANT UPDATE (
    cron_expr, timezone, kind, queue, args, priority, max_attempts, tags, metadata, missed_fire_policy, deadline_s,
    last_enqueued_at, anchored_at, next_fire_at, updated_at
) ON awa.cron_jobs TO awa_evaluate;
GRANT SELECT, INSERT ON awa.jobs TO awa_evaluate;

-- Work, as `awa-cron run --no-evaluate` does: run jobs. Not make, delete or rewrite them, or touch a schedule.
GRANT SELECT ON awa.jobs, awa.queue_meta TO awa_work;
GRANT UPDATE (
    state, attempt, max_attempts, run_at, attempted_at, attempted_by, heartbeat_at, finalized_at, errors
) ON awa.jobs TO awa_work;

-- Read, as list, show, history, explain, verify, `queue list` and `dead list` do.
GRANT SELECT ON awa.cron_jobs, awa.jobs, awa.jobs_dead, awa.queue_meta, awa.cron_events TO awa_read;

-- Purge, as `awa-cron purge` does, and a leader with Settings.keep_jobs_s or keep_events_s, which needs both roles.
GRANT SELECT, DELETE ON awa.jobs, awa.cron_events TO awa_purge;
GRANT INSERT ON awa.cron_events TO awa_purge;
