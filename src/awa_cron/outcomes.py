"""What a handler may return instead of nothing, and how it hears that it is to stop."""

from __future__ import annotations

import dataclasses
import threading

from awa_cron.errors import AttemptCancelled, InvalidArgument

MAX_DELAY_S = 366 * 24 * 3600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Snooze:
    """Call the handler again after ``delay_s`` seconds; this attempt does not count."""

    delay_s: float

    def __post_init__(self) -> None:
        check_delay(self.delay_s, "Snooze.delay_s")


@dataclasses.dataclass(frozen=True, slots=True)
class RetryAfter:
    """The attempt has failed; the next one, if any is left, is after ``delay_s`` seconds and not by the backoff."""

    delay_s: float
    reason: str = "the handler asked for a retry"

    def __post_init__(self) -> None:
        check_delay(self.delay_s, "RetryAfter.delay_s")
        _check_reason(self.reason, "RetryAfter.reason")


@dataclasses.dataclass(frozen=True, slots=True)
class Cancel:
    """Nothing will come of this job: it ends as cancelled, whatever attempts are left."""

    reason: str = "the handler cancelled it"

    def __post_init__(self) -> None:
        _check_reason(self.reason, "Cancel.reason")


class Cancellation:
    """Tells a handler that it is to stop, and why. An async handler is cancelled at the same time.

    A sync handler runs in a thread, which nobody can stop: it has to look here now and then.
    """

    __slots__ = ("_event", "_reason")

    _lock = threading.Lock()

    def __init__(self) -> None:
        self._event: threading.Event | None = None  # made when somebody waits, since nearly nobody does
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        """Why the handler is to stop; None as long as it may go on."""
        return self._reason

    def is_set(self) -> bool:
        """Tell whether the handler is to stop."""
        return self._reason is not None

    def wait(self, timeout_s: float) -> bool:
        """Sleep in a sync handler; True as soon as it is to stop."""
        with self._lock:
            if self._reason is not None:
                return True
            self._event = self._event or threading.Event()
        return self._event.wait(timeout_s)

    def check(self) -> None:
        """Go on, or stop here.

        Raises:
            AttemptCancelled: The handler is to stop.
        """
        if self._reason is not None:
            raise AttemptCancelled(self._reason)

    def set(self, reason: str) -> None:
        """Ask the handler to stop; the first reason stays."""
        with self._lock:
            self._reason = self._reason or reason
            if self._event is not None:
                self._event.set()


def check_delay(value: object, what: str) -> float:
    """Return a number of seconds.

    Raises:
        InvalidArgument: It is none, or cannot be added to a time.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= MAX_DELAY_S:  # type: ignore[operator]
        raise InvalidArgument(f"{what} is {value!r}: it must be a number of seconds from 0 to a year")
    return float(value)  # type: ignore[arg-type]


def _check_reason(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} must be a string, not {type(value).__name__}")
