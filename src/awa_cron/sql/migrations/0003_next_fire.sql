-- When each schedule fires next, so that a pass reads what is due and not what exists
-- (spec/AwaCronNext.tla, spec/decisions/0016-next-fire.md).

ALTER TABLE awa.cron_jobs ADD COLUMN next_fire_at timestamptz;

COMMENT ON COLUMN awa.cron_jobs.next_fire_at IS 'No fire that counts comes before it; infinity if none is left; NULL if nobody has worked it out. Derived from the row: never write it';

CREATE INDEX cron_jobs_due ON awa.cron_jobs (next_fire_at, name) WHERE paused_at IS NULL;
CREATE INDEX cron_jobs_unknown ON awa.cron_jobs (name) WHERE paused_at IS NULL AND next_fire_at IS NULL;

-- Whoever changes what the next fire is derived from, and not the next fire with it, leaves it unknown.
CREATE FUNCTION awa.forget_next() RETURNS trigger LANGUAGE plpgsql AS $forget$
BEGIN
    NEW.next_fire_at := NULL;
    RETURN NEW;
END
$forget$;

CREATE TRIGGER cron_jobs_forget_next BEFORE UPDATE ON awa.cron_jobs FOR EACH ROW
    WHEN (NEW.next_fire_at IS NOT DISTINCT FROM OLD.next_fire_at
          AND (NEW.cron_expr, NEW.timezone, NEW.missed_fire_policy, NEW.anchored_at, NEW.last_enqueued_at)
              IS DISTINCT FROM
              (OLD.cron_expr, OLD.timezone, OLD.missed_fire_policy, OLD.anchored_at, OLD.last_enqueued_at))
    EXECUTE FUNCTION awa.forget_next();
