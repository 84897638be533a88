"""How states of the spec look in the database: many at once, each with schedules named ``digest#k`` and so on.

``columns`` is what `PUT` writes for them; `Images` reads what `FOUND` found. The two know the same columns, and are
tried on each other whenever a state is put in place and left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.model.cluster import EPOCH, instant
from tests.model.next_fire import check_never_late, derived_next
from tests.model.spec_model import Model
from tests.model.spec_state import Row, State, Table

PUT = """
WITH stored AS (
    INSERT INTO awa.cron_jobs (
        name, cron_expr, kind, missed_fire_policy, last_enqueued_at, anchored_at, paused_at, next_fire_at
    )
    SELECT name, cron_expr, 'model', policy, last, anchor, CASE WHEN paused THEN anchor END, next
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bool[], $7::timestamptz[]
    ) AS r (name, cron_expr, policy, last, anchor, paused, next)
), made AS (
    INSERT INTO awa.jobs (kind, metadata)
    SELECT 'model', jsonb_strip_nulls(jsonb_build_object('cron_name', name, 'cron_fire_time',
        to_char(fire AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
    FROM unnest($8::text[], $9::timestamptz[]) AS j (name, fire)
)
INSERT INTO awa.cron_events (clock, action, name, last_enqueued_at)
SELECT last, 'remove', name, last FROM unnest($10::text[], $11::timestamptz[]) AS e (name, last)
"""

FOUND = """
SELECT name, string_agg(part, ';' ORDER BY part)
FROM (
    SELECT
        name,
        concat_ws(
            '|', 'row', cron_expr, coalesce(last_enqueued_at::text, ''), anchored_at,
            CASE WHEN paused_at IS NULL THEN 'f' ELSE 't' END, coalesce(next_fire_at::text, '')
        )
    FROM awa.cron_jobs
    UNION ALL SELECT metadata ->> 'cron_name', 'job|' || coalesce(metadata ->> 'cron_fire_time', '') FROM awa.jobs
    UNION ALL SELECT name, concat('removed|', last_enqueued_at) FROM awa.cron_events WHERE action = 'remove'
) AS found (name, part)
GROUP BY name
"""
"""One text for each schedule; the session's zone must be UTC."""


@dataclass(frozen=True, slots=True)
class Image:
    """What the database holds of one schedule."""

    row: Row | None
    jobs: Table[int, int]
    triggered: int
    floor: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What it holds of one world."""

    rows: Table[str, Row | None]
    jobs: Table[str, Table[int, int]]
    triggered: Table[str, int]
    floor: Table[str, int]


def named(s: str, world: int) -> str:
    """Return what a schedule of the spec is called in a world."""
    return f"{s}#{world}"


def parted(name: str) -> tuple[str, int]:
    """Return the schedule and the world of a name."""
    s, _, world = name.partition("#")
    return s, int(world)


def minute(time: datetime) -> int:
    """Return the model's instant of a clock's time."""
    minutes, rest = divmod((time - EPOCH).total_seconds(), 60)
    assert rest == 0, f"{time} is no instant of the model"
    return int(minutes)


def columns(model: Model, expressions: Mapping[str, str], states: Sequence[State]) -> list[list[Any]]:
    """Return the arguments of `PUT`: everything that the states have in the database."""
    rows: list[tuple[str, str, str, datetime | None, datetime, bool, datetime | None]] = []
    jobs: list[tuple[str, datetime | None]] = []
    floors: list[tuple[str, datetime]] = []
    for world, state in enumerate(states):
        for s, row in state.rows.items():
            name = named(s, world)
            if row is not None:
                last = None if row.last is None else instant(row.last)
                cron_expr, policy = expressions[row.definition], model.policies[s]
                # In every other world nobody has worked out the next fire yet.
                following = derived_next(model.definitions[row.definition], row) if world % 2 else None
                next_fire = None if following is None else instant(following)
                rows.append((name, cron_expr, policy, last, instant(row.anchor), row.paused, next_fire))
            for fire, count in state.jobs[s].items():
                jobs.extend([(name, instant(fire))] * count)
            jobs.extend([(name, None)] * state.triggered[s])
            if state.floor[s] > 0:
                floors.append((name, instant(state.floor[s])))
    return [*_transposed(rows, 7), *_transposed(jobs, 2), *_transposed(floors, 2)]


def _transposed(table: list[Any], width: int) -> list[list[Any]]:
    return [[row[column] for row in table] for column in range(width)]


class Images:
    """Reads what `FOUND` found; the same text is read once."""

    def __init__(self, model: Model, expressions: Mapping[str, str]) -> None:
        self._schedules = model.schedules
        self._definitions = model.definitions
        self._definition_of = {cron_expr: definition for definition, cron_expr in expressions.items()}
        self._stored: dict[tuple[str, ...], Stored] = {}

    def read(self, number: int, found: Iterable[tuple[str, str]]) -> list[Stored]:
        """Return so many worlds; what belongs to none of them is an error."""
        texts = dict(found)
        worlds = [self._world(tuple(texts.pop(named(s, k), "") for s in self._schedules)) for k in range(number)]
        assert not texts, f"of no world: {texts}"
        return worlds

    def _world(self, texts: tuple[str, ...]) -> Stored:
        if texts not in self._stored:
            images = dict(zip(self._schedules, map(self._image, texts), strict=True))
            self._stored[texts] = Stored(
                rows=Table((s, image.row) for s, image in images.items()),
                jobs=Table((s, image.jobs) for s, image in images.items()),
                triggered=Table((s, image.triggered) for s, image in images.items()),
                floor=Table((s, image.floor) for s, image in images.items()),
            )
        return self._stored[texts]

    def _image(self, text: str) -> Image:
        row, jobs, triggered, floor = None, Counter[int](), 0, 0
        for part in filter(None, text.split(";")):
            match part.split("|"):
                case ["row", cron_expr, last, anchor, paused, next_fire]:
                    row = Row(self._definition_of[cron_expr], _minute(last), _minute(anchor) or 0, paused == "t")
                    check_never_late(self._definitions[row.definition], row, _minute(next_fire))
                case ["job", ""]:
                    triggered += 1
                case ["job", fire]:
                    jobs[minute(datetime.fromisoformat(fire))] += 1
                case ["removed", last]:
                    floor = max(floor, _minute(last) or 0)
                case _:
                    raise AssertionError(f"{part!r} is no part of a schedule")
        return Image(row, Table(jobs), triggered, floor)


def _minute(text: str) -> int | None:
    return minute(datetime.fromisoformat(text)) if text else None
