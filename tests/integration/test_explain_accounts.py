"""What is explained is what the books of `awa-cron verify` account for: every due instant of random logs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import asyncpg

from awa_cron import Client, Reason
from awa_cron.insight.reasons import OF_FATE
from awa_cron.model import Event
from awa_cron.verify import Checker
from awa_cron.verify.fates import Fates
from awa_cron.verify.instants import instants_of
from awa_cron.verify.state import State
from tests.model.logs import EPOCH, EXPRESSIONS, PASS_LIMIT, ZONES, Recorded, recorded

WALKS, STEPS = 12, 40
IN_BOOKS = {Reason.PAUSED: "held", Reason.NO_LEADER: "pending"} | {reason: fate for fate, reason in OF_FATE.items()}


def by_the_whole_log(log: Recorded, now: datetime) -> dict[datetime, str]:
    """Return the fate of every due instant, by the shares that the books count, given the whole log."""
    fates, state = Fates(), State(present=False, floor_known=True)
    found: dict[datetime, str] = {}
    for event in log.log:
        for share in fates.of(state, event):
            span = (
                []
                if share.instants is None or share.after is None or share.until is None
                else list(share.instants.between(share.after, share.until))
            )
            found |= {at: str(share.fate_of(at)) for at in (*share.fires, *span)}
        state.adopt(event)
    if log.row is not None:
        after = max(filter(None, (log.row.last_enqueued_at, log.row.anchored_at)))
        waits = "pending" if log.row.paused_at is None else "held"
        found |= dict.fromkeys(instants_of(log.row.cron_expr, log.row.timezone).between(after, now), waits)
    return found


def counted(log: Recorded, now: datetime) -> Counter[str]:
    """Return the books of the verifier."""
    checker = Checker("s", from_start=True, pass_limit=PASS_LIMIT)
    for event in log.log:
        checker.feed(event)
    _, account = checker.finish(log.row, now, grace=timedelta.max)
    return Counter({name: getattr(account, name) for name in IN_BOOKS.values()})


def last_clock(log: tuple[Event, ...]) -> datetime:
    return max(event.clock for event in log)


async def test_every_due_instant_of_a_random_log_is_explained_as_the_books_have_it(
    dsn: str, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    logs = await recorded(dsn, WALKS, STEPS)
    seen: Counter[str] = Counter()
    for log in logs:
        name, now = log.log[0].name or "", last_clock(log.log) + timedelta(minutes=7)
        wanted = by_the_whole_log(log, now)
        once = Counter(wanted.values())
        assert all(once[fate] <= count for fate, count in counted(log, now).items()), "the books are these shares"
        async with Client(dsn, clock=lambda now=now: now) as operator:  # type: ignore[misc]
            for instant in candidates(now):
                [told] = await operator.explain(name, instant)
                assert wanted.get(instant) == IN_BOOKS.get(told.reason), (name, told)
                seen[told.reason] += 1
    assert set(IN_BOOKS) <= set(seen), seen
    assert Reason.UNACCOUNTED not in seen
    assert Reason.UNKNOWN not in seen


def candidates(now: datetime) -> list[datetime]:
    """Return every instant that some definition of a walk has, up to a little after its end."""
    found = {
        instant
        for expression in EXPRESSIONS
        for zone in ZONES
        for instant in instants_of(expression, zone).between(
            EPOCH - timedelta(minutes=5), now + timedelta(minutes=2)
        )
    }
    return sorted(found)[::3]
