"""What ``awa-cron explain`` says of the run, beside the demo's own accounts, of which it knows nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta

from awa_cron.client import Client
from awa_cron.demo.account import Account
from awa_cron.insight.reasons import Explanation, Reason

WANTED = {"enqueued": Reason.ENQUEUED, "coalesced": Reason.COALESCED, "paused": Reason.PAUSED_OVER}
"""What the accounts' words are called there."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Explanations of a run.

    Attributes:
        instants: How many were asked for.
        examples: One of each reason.
        wrong: Those that differ from what should be, which is beside them.
    """

    instants: int
    examples: tuple[Explanation, ...]
    wrong: tuple[tuple[Explanation, Reason], ...]


async def explained(client: Client, accounts: Sequence[Account]) -> Explained:
    """Have every due instant explained, and one of each kind that the accounts do not have.

    Args:
        client: Entered.
        accounts: Of a run at whose end every schedule is paused.
    """
    found: list[tuple[Explanation, Reason]] = []
    for account in accounts:
        for instant, fate in account.fates.items():
            if fate in WANTED:  # what is lost has been told already
                found += [(each, WANTED[fate]) for each in await client.explain(account.name, instant)]
    busy, idle = "heartbeat", "nightly_backup"
    schedule = await client.get_schedule(busy)
    second = timedelta(seconds=1)
    asked: tuple[tuple[str, datetime | None, tuple[Reason, ...]], ...] = (
        (busy, None, (Reason.PAUSED, Reason.NOT_YET_DUE)),
        (busy, schedule.anchored_at.replace(microsecond=0) - second, (Reason.BEFORE_ANCHOR,)),
        (idle, schedule.anchored_at + 5 * second, (Reason.NOT_A_FIRE,)),
    )
    for name, at, reasons in asked:
        found += zip(await client.explain(name, at), reasons, strict=True)
    examples = {each.reason: each for each, _ in found}
    wrong = tuple((each, reason) for each, reason in found if each.reason is not reason)
    return Explained(instants=len(found), examples=tuple(examples.values()), wrong=wrong)
