"""How often, how long, how many: one frozen record, passed in. Defaults are the ADR's where it names one."""

from __future__ import annotations

import dataclasses
import math

from awa_cron.errors import InvalidArgument

MOST = 1e10
"""Seconds, some 300 years: what comes before that can still be told in a date."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Timing and limits of one instance. All ``_s`` values are seconds.

    Attributes:
        evaluate_interval_s: The leader reads the schedules and enqueues what is due this often.
        sweep_interval_s: The leader looks at every schedule this often, beside its passes, to check its next fire.
        sync_interval_s: Every instance writes its own schedules this often, leader or not.
        ping_interval_s: The leader asks whether its session still holds the lock this often.
        ping_timeout_s: A ping that takes longer counts as failed.
        election_interval_s: An instance that does not lead tries to this often, with up to a quarter more.
        statement_timeout_s: The longest any other database call may take.
        pass_limit: The most fires that one schedule gets in one pass (catch-up).
        concurrency: Jobs that this instance runs at once. From 2 on, as many again may stand as ``running``:
            their handlers have ended, their outcomes are being written.
        poll_interval_s: A worker looks for jobs this often when no notification wakes it.
        heartbeat_interval_s: A worker renews its running jobs this often.
        rescue_after_s: A running job without a heartbeat for this long is taken from its worker.
        keep_jobs_s: Completed and cancelled jobs are kept this long; None for ever. The dead stay until somebody
            purges them.
        keep_events_s: Events are kept this long, but those that are still asked; None for ever.
        purge_interval_s: The leader deletes what is older this often.
        shutdown_timeout_s: Running handlers get this long to finish; then they are cancelled, and those that ignore
            it are left behind some ten seconds later.
    """

    evaluate_interval_s: float = 1.0
    sweep_interval_s: float = 3600.0
    sync_interval_s: float = 60.0
    ping_interval_s: float = 30.0
    ping_timeout_s: float = 5.0
    election_interval_s: float = 2.0
    statement_timeout_s: float = 30.0
    pass_limit: int = 100
    concurrency: int = 10
    poll_interval_s: float = 1.0
    heartbeat_interval_s: float = 15.0
    rescue_after_s: float = 60.0
    shutdown_timeout_s: float = 30.0
    keep_jobs_s: float | None = None
    keep_events_s: float | None = None
    purge_interval_s: float = 600.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None and field.name in {"keep_jobs_s", "keep_events_s"}:
                continue
            whole = field.name in {"pass_limit", "concurrency"}
            kind = int if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value) or value <= 0:
                wanted = "a whole number" if whole else "a number of seconds"
                raise InvalidArgument(f"Settings.{field.name} is {value!r}: it must be {wanted} above 0")
            if value > MOST:
                raise InvalidArgument(f"Settings.{field.name} is {value!r}: it must be at most {MOST:.0e}")
        if self.rescue_after_s <= self.heartbeat_interval_s:
            raise InvalidArgument(
                f"Settings.rescue_after_s is {self.rescue_after_s}, heartbeat_interval_s "
                f"{self.heartbeat_interval_s}: a live worker's jobs would be rescued; make the first at least "
                "twice the second"
            )

    @property
    def leader_idle_timeout_s(self) -> float:
        """How long the server keeps a silent leader's session, and with it the lock.

        A frozen process or a vanished host stops pinging, so its session ends and somebody else can lead.
        """
        return 2 * self.ping_interval_s + self.ping_timeout_s
