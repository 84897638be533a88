"""What a verification says: findings, and the account of every schedule. Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Final

MAX_FINDINGS: Final = 1_000
"""The most findings of one kind that are kept."""

EXAMPLES: Final = 20
"""The most events, and jobs, that a finding names for many alike."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A place where log, rows and jobs are no behaviour of the spec, or not of the same one.

    Attributes:
        rule: The guard, action or property of ``spec/AwaCron.tla`` or ``AwaCronNext`` that does not hold.
        schedule: Whose.
        message: What is wrong, in one sentence.
        events: The smallest window of the log: ids of what set the state, and of the event that does not fit it.
        jobs: Ids of the jobs in question.
        count: How many alike it stands for; of those, ``events`` and ``jobs`` are examples.
    """

    rule: str
    schedule: str
    message: str
    events: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()
    count: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What became of one schedule's due instants, as far back as the log that was read.

    Attributes:
        events: Events of the schedule that were checked.
        enqueued: Instants that a pass turned into jobs.
        settled: Instants that an edit turned into jobs.
        coalesced: Instants that a later one of the same pass or edit stands for.
        paused: Instants like those, that fell due during a pause.
        dropped: Instants that an edit gave up, for a pause or the pass limit.
        removed: Instants that went with their schedule.
        held: Instants that wait for the end of a pause.
        pending: Instants that are due and not enqueued yet.
        triggered: Jobs made by hand.
        counted_all: False where a span held more instants than were counted.
        since: The first anchor in the log: no earlier instant counts. None where it is not known.
    """

    name: str
    events: int
    enqueued: int
    settled: int
    coalesced: int
    paused: int
    dropped: int
    removed: int
    held: int
    pending: int
    triggered: int
    counted_all: bool
    since: datetime | None

    @property
    def due(self) -> int:
        """Every due instant."""
        made = self.enqueued + self.settled + self.coalesced + self.paused
        return made + self.dropped + self.removed + self.held + self.pending


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a verification.

    Attributes:
        now: The database's clock, up to which instants are accounted for.
        events: How many events were checked.
        from_start: Whether the log that was read goes back to the first event ever, or at least to the
            registration of each schedule. If not, the state at its beginning was taken from the events before, or
            learned.
        accounts: One per schedule that has a row or events, by name.
        findings: What is wrong, by schedule, in the order of the log; those alike are folded into one, and of each
            kind of trouble at most ``MAX_FINDINGS`` are kept.
        findings_total: How many there are, each counted.
        jobs_deleted: Jobs of the log that are in the table no more.
    """

    now: datetime
    events: int
    from_start: bool
    accounts: tuple[Account, ...]
    findings: tuple[Finding, ...]
    findings_total: int
    jobs_deleted: int

    @property
    def balances(self) -> bool:
        """Whether nothing is lost, doubled, early or invented."""
        return not self.findings_total
