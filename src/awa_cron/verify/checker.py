"""The verdict on one schedule: its events by the rules, its row by the log, its instants by the books. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from awa_cron import firing
from awa_cron.model import Event, MissedFirePolicy, ScheduleState
from awa_cron.verify import rules
from awa_cron.verify.books import COUNTED, Books
from awa_cron.verify.instants import instants_of
from awa_cron.verify.readable import unreadable
from awa_cron.verify.state import ACTIONS, UNKNOWN, State, known_and_not
from awa_cron.verify.verdict import Account, Finding
from awa_cron.verify.wording import moment, shown

BY_HAND = "changed by hand, or events are lost"


class Checker:
    """Checks the log of one schedule; feed it the events in the order of their ids.

    Args:
        name: The schedule.
        from_start: Whether its first event is its first ever.
        floor: The highest last fire of its rows that were removed before the log begins.
        pass_limit: The most fires of one pass, if known.

    Attributes:
        began: Whether an event has been checked.
        from_registration: Whether the first of them is the schedule's registration.
    """

    def __init__(
        self, name: str, *, from_start: bool, floor: datetime | None = None, pass_limit: int | None = None
    ) -> None:
        self.name = name
        self.began = self.from_registration = False
        self.state = State(present=False if from_start else UNKNOWN, floor=floor, floor_known=from_start)
        self._pass_limit = pass_limit
        self._books = Books()

    def learn(self, event: Event) -> None:
        """Take an event from before the log as it is."""
        if unreadable(event) is None:
            self.state.adopt(event)

    def learn_row(self, row: ScheduleState) -> None:
        """Take definition, policy and anchor from the row as it is now, of which the log tells no change."""
        self.state.present = True
        self.state.definition = (row.cron_expr, row.timezone)
        self.state.policy, self.state.anchor = row.missed_fire_policy, row.anchored_at

    def feed(self, event: Event) -> list[Finding]:
        """Check the next event, and go on as if it had been right.

        Returns:
            What is wrong with it, the root of the trouble first.
        """
        if event.action not in ACTIONS:
            return []  # another version may log more
        first, self.began = not self.began, True
        reason = unreadable(event)
        if reason is not None:
            self.state.forget(event)
            said = f"event {event.id} ({event.action}) cannot be read: {reason}"
            return [Finding(rule="Readable", schedule=self.name, message=said, events=(event.id,))]
        if first:
            self.from_registration = event.action == "sync" and event.details.get("change") == "inserted"
        found = list(rules.broken(self.state, event, self._pass_limit))
        self._books.enter(self.state, event)
        self.state.adopt(event)
        self._books.begin(self.state)
        return found

    def finish(
        self, row: ScheduleState | None, now: datetime, *, grace: timedelta, leading: str = ""
    ) -> tuple[list[Finding], Account]:
        """Compare the row with the end of its log, and account for what is due.

        Args:
            row: As it is now, None where there is none.
            now: The database's clock.
            grace: How long an instant may be due before it counts as lost or late.
            leading: What is known about the leadership, for the message.
        """
        self._books.begin(self.state)
        found = list(self._row_as_logged(row))
        if row is not None:
            found += self._outstanding(row, now, grace, leading)
        return found, self._books.account(self.name)

    def _row_as_logged(self, row: ScheduleState | None) -> Iterator[Finding]:
        state = self.state
        if row is None:
            if state.present is True:
                yield self._finding("RowAsLogged", f"there is no row, but the log has one: {BY_HAND}", "present")
            return
        if state.present is False:
            logged = "it was removed" if state.set_by else "it was never registered"
            yield self._finding("RowAsLogged", f"there is a row, but by the log {logged}: {BY_HAND}", "present")
            return
        columns: dict[str, object] = {
            "definition": (row.cron_expr, row.timezone),
            "policy": row.missed_fire_policy,
            "last": row.last_enqueued_at,
            "anchor": row.anchored_at,
            "paused": row.paused_at,
        }
        for field, value in columns.items():
            logged_value = getattr(state, field)
            if known_and_not(logged_value, value):
                message = f"the row's {field} is {shown(value)}, by the log it is {shown(logged_value)}: {BY_HAND}"
                yield self._finding("RowAsLogged", message, field)

    def _outstanding(self, row: ScheduleState, now: datetime, grace: timedelta, leading: str) -> Iterator[Finding]:
        if firing.problem(row) is not None:
            return  # nobody can say what is due; `awa-cron list` shows it as broken
        instants = instants_of(row.cron_expr, row.timezone)
        after = max(filter(None, (row.last_enqueued_at, row.anchored_at)))
        oldest = instants.first_after(after)
        if row.next_fire_at is not None and oldest is not None and row.next_fire_at > oldest:
            said = f"the row's next fire is {moment(row.next_fire_at)}, but {moment(oldest)} comes before it"
            yield self._finding("NextNeverLate", f"{said}: written by hand, or by another release", "definition")
        if oldest is None or oldest > now:
            return
        count = self._books.outstanding(instants, after, now, paused=row.paused_at is not None)
        waits_since = oldest if self.state.active is None else max(oldest, self.state.active)
        if row.paused_at is not None or now - waits_since <= grace:
            return
        catches_up = row.missed_fire_policy == MissedFirePolicy.CATCH_UP
        rule = "CatchUpFiresEventuallyEnqueued" if catches_up else "CoalescedLatestFireEventuallyEnqueued"
        many = f"more than {COUNTED}" if count > COUNTED else str(count)
        message = f"{many} due and not enqueued, the oldest {moment(oldest)}: lost, or late"
        yield self._finding(rule, f"{message}; {leading}" if leading else message, "last")

    def _finding(self, rule: str, message: str, field: str) -> Finding:
        origin = self.state.set_by.get(field)
        return Finding(rule=rule, schedule=self.name, message=message, events=() if origin is None else (origin,))
