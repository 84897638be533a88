"""What the viewer sees: the story line by line, below it a live table; in a pipe, plain lines only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Self
from zoneinfo import ZoneInfo

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from awa_cron.demo.account import Account
from awa_cron.demo.explained import Explained
from awa_cron.demo.observe import Status
from awa_cron.demo.workers import Worker
from awa_cron.verify import Verdict

PLAIN_EVERY_S = 5.0
LEGEND = """\
coalesced   nobody led when they fell due; one job for the latest stands for them (ledger has one for each)
paused      they fell due while the schedule was paused
executed    instants whose handler came to its end, as the handlers themselves wrote it down
run again   a worker died or froze before it could say that a job was done, so another ran it again: at least once
latest      the longest that a job came after its instant"""
GOOD = "bold green"
_STYLE = {
    "leads": "bold magenta",
    "died": "bold red",
    "running": "green",
    "frozen": "bold cyan",
    "killed": "bold red",
    "stopped": "dim",
}


class View:
    """Prints the story; a context, so that the live table ends before whatever follows."""

    def __init__(self) -> None:
        console = Console(highlight=False)
        self._console = (
            console if console.is_terminal else Console(highlight=False, width=10_000, color_system=None)
        )
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._began = time.monotonic()
        self._next_plain = PLAIN_EVERY_S

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_live()

    def end_live(self) -> None:
        """Take the live table away; the story stays."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._began

    def tell(self, what: str, why: str = "", style: str = "bold") -> None:
        """Print one line of the story: what happens, and why it matters."""
        line = Table.grid(padding=(0, 1))
        line.add_column(justify="right", width=8, style="dim")
        line.add_column(overflow="fold")
        line.add_row(
            f"{self.elapsed_s:.1f} s",
            Text.assemble((what[:1].upper() + what[1:], style), (f" {why}" if why else "", "")),
        )
        self._console.print(line)

    def show(self, schedules: Sequence[Status], workers: Sequence[Worker], leader: int | None) -> None:
        """Refresh the live table; in a pipe, print a line from time to time."""
        if self._live is not None:
            self._live.update(Group(Text(), _schedules(schedules), Text(), _workers(workers, leader)))
        elif self.elapsed_s >= self._next_plain:
            self._next_plain = self.elapsed_s + PLAIN_EVERY_S
            jobs, done = sum(each.jobs for each in schedules), sum(each.done for each in schedules)
            who = ", ".join(f"{each.number} {_role(each, leader)}" for each in workers)
            self.tell(f"… {jobs} jobs made, {done} done; workers: {who}", style="")

    def accounts(self, accounts: Sequence[Account]) -> None:
        """Print the final table."""
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
        table.add_column("schedule")
        for column in ("due", "enqueued", "coalesced", "paused", "executed", "lost", "duplicated"):
            table.add_column(column, justify="right")
        table.add_column("run again", justify="right", style="dim")
        table.add_column("triggered", justify="right", style="dim")
        table.add_column("latest", justify="right", style="dim")
        for each in accounts:
            counts = (each.due, each.enqueued, each.coalesced, each.paused, each.executed)
            table.add_row(
                each.name,
                *map(str, counts),
                _must_be_none(len(each.lost)),
                _must_be_none(len(each.duplicated) + len(each.stray)),
                str(each.repeated),
                str(each.triggered),
                "-" if each.latest is None else f"{each.latest.total_seconds():.2f} s",
            )
        self._console.print()
        self._console.print(table)
        self._console.print()

    def verdict(self, accounts: Sequence[Account]) -> bool:
        """Say whether the accounts balance, and where they do not, at which instants; return it too."""
        for each in accounts:
            for what, instants in (("lost", each.lost), ("duplicated", each.duplicated), ("not due", each.stray)):
                if instants:
                    self.say(f"{each.name}: {what}: {', '.join(f'{at:%H:%M:%S}' for at in instants)}", "red")
            if each.unfinished_triggers:
                self.say(f"{each.name}: triggered and never run: {each.unfinished_triggers}", "red")
        balanced = all(each.balances for each in accounts)
        made = sum(each.enqueued for each in accounts)
        if balanced:
            self.say(f"Nothing lost, nothing doubled: {made} instants, {made} jobs, all run.", "bold green")
        else:
            self.say("The accounts do not balance.", "bold red")
        self.say(LEGEND, "dim")
        return balanced

    def verified(self, verdict: Verdict) -> bool:
        """Say what ``awa-cron verify`` makes of the run, which knows nothing of our accounts; return it too."""
        for each in verdict.findings:
            self.say(f"{each.schedule}: {each.rule}: {each.message}", "red")
        if verdict.balances:
            self.say(f"awa-cron verify: {verdict.events} events, a behaviour of the spec.", "bold green")
        else:
            self.say("awa-cron verify: no behaviour of the spec.", "bold red")
        return verdict.balances

    def explained(self, found: Explained) -> bool:
        """Show what ``awa-cron explain`` says of one instant of each kind; return whether all of it is right."""
        for each, reason in found.wrong:
            self.say(f"{each.name} at {each.at:%H:%M:%S}: {each.reason}, and should be: {reason}", "bold red")
        if not found.wrong:
            self.say(
                f"awa-cron explain: {found.instants} instants, each as in the accounts. One of each kind:", GOOD
            )
        for each in found.examples:
            self.say(f"  {each.name} at {each.at:%H:%M:%S}: {each.reason}: {each.sentence}")
        self.say("On a database of your own: awa-cron explain NAME [--at TIME].", "dim")
        return not found.wrong

    def say(self, text: str = "", style: str = "") -> None:
        """Print a paragraph."""
        self._console.print(Text(text, style=style))


def _schedules(schedules: Sequence[Status]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for column in ("schedule", "expression", "policy", "queue", "prio", "last fire, its own zone"):
        table.add_column(column)
    for column in ("jobs", "waiting", "running", "done"):
        table.add_column(column, justify="right")
    table.add_column("")
    for each in schedules:
        table.add_row(
            each.name,
            each.cron_expr,
            each.missed_fire_policy,
            each.queue,
            str(each.priority),
            _local(each.last_enqueued_at, each.timezone),
            str(each.jobs),
            str(each.waiting),
            str(each.running),
            str(each.done),
            Text("paused", "bold yellow") if each.paused_at is not None else Text(),
        )
    return table


def _workers(workers: Sequence[Worker], leader: int | None) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for each in workers:
        role = _role(each, leader)
        style = _STYLE.get(role, _STYLE[each.state])
        table.add_row(str(each), Text(f"pid {each.pid}", "dim"), Text(role, style))
    return table


def _role(worker: Worker, leader: int | None) -> str:
    if worker.state == "running" and not worker.alive():
        return "died"
    if worker.pid == leader:
        return "leads" if worker.state == "running" else f"{worker.state}, holds the lock"
    return "works" if worker.state == "running" else worker.state


def _local(value: datetime | None, timezone: str) -> str:
    return "-" if value is None else f"{value.astimezone(ZoneInfo(timezone)):%H:%M:%S %Z}"


def _must_be_none(count: int) -> Text:
    return Text(str(count), "bold green" if count == 0 else "bold red")
