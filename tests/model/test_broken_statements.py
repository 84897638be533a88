"""Statements broken on purpose, each caught by the property that it breaks; the sound ones pass the same steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from awa_cron.sql import Schema
from tests.model.machine import on_postgres

Edit = Callable[[str], str]


def without(*guards: str) -> Edit:
    """Drop the lines of a WHERE that carry these labels."""

    def edit(text: str) -> str:
        for guard in guards:
            condition = rf"^ +AND (?:(?!^ +AND).)*?-- {guard}\n"
            text, dropped = re.subn(condition, "", text, flags=re.MULTILINE | re.DOTALL)
            assert dropped == 1, f"{guard} labels {dropped} conditions"
        return text

    return edit


def replacing(old: str, new: str) -> Edit:
    """Put other text in the place of a piece that stands there once."""

    def edit(text: str) -> str:
        assert text.count(old) == 1, f"{old!r} stands there {text.count(old)} times"
        return text.replace(old, new)

    return edit


def both(one: Edit, other: Edit) -> Edit:
    """Make two edits of one statement."""
    return lambda text: other(one(text))


class Broken(Schema):
    """The usual schema with one statement edited, or more."""

    def __init__(self, statement: str, edit: Edit, **more: Edit) -> None:
        super().__init__()
        self._edits = {statement: edit, **more}

    def statement(self, name: str) -> str:
        text = super().statement(name)
        return self._edits[name](text) if name in self._edits else text


@dataclass(frozen=True)
class Variant:
    """A broken statement, the property that must notice, and steps of the model that lead there."""

    name: str
    property: str
    statement: str
    edit: Edit
    steps: str


LEADING = "sync digest each, sync ledger each, acquire_leader a, advance_clock, read_cron_state a"
STALE = f"{LEADING}, drop_session a, acquire_leader b, read_cron_state b, atomic_enqueue b"

VARIANTS = [
    Variant(
        "NoPauseGuard",
        "PausedBlocksEnqueue",
        "atomic_enqueue",
        without("Unpaused"),
        f"{LEADING}, pause digest, pause ledger, cas_fail a",
    ),
    Variant(
        "NoCAS",
        "NoDuplicateFire",
        "atomic_enqueue",
        without("LastAsRead", "Advances"),
        f"{STALE}, cas_fail a",
    ),
    Variant(
        "RecreateABA",
        "NoDuplicateFire",
        "atomic_enqueue",
        without("AfterAnchor", "DefinedAsRead"),
        f"{STALE}, remove digest, sync digest each, remove ledger, sync ledger each, cas_fail a",
    ),
    Variant(
        "NullIsNotEqual",
        "SameAsModel",
        "atomic_enqueue",
        replacing("c.last_enqueued_at IS NOT DISTINCT FROM b.expected ", "c.last_enqueued_at = b.expected "),
        f"{LEADING}, atomic_enqueue a",
    ),
    Variant(
        "SplitMarkInsert",
        "MarkIffJob",
        "atomic_enqueue",
        # Without the second edit the event, which must name its jobs, already refuses.
        both(
            replacing("unnest(m.fires) AS f (fire)", "unnest('{}'::timestamptz[]) AS f (fire)"),
            replacing("m.fires, made.job_ids,", "m.fires, coalesce(made.job_ids, '{}'),"),
        ),
        f"{LEADING}, atomic_enqueue a",
    ),
    Variant(
        "SplitInsertMark",
        "MarkIffJob",
        "atomic_enqueue",
        replacing(
            "SET last_enqueued_at = b.last_fire, next_fire_at = b.next_fire_at",
            "SET last_enqueued_at = c.last_enqueued_at, next_fire_at = c.next_fire_at",
        ),
        f"{LEADING}, atomic_enqueue a",
    ),
    Variant(
        "PauseMovesLast",
        "PauseTouchesOnlyPause",
        "pause",
        replacing("SET paused_at = clock.now,", "SET paused_at = clock.now, last_enqueued_at = clock.now,"),
        "sync digest each, advance_clock, pause digest",
    ),
    Variant(
        "UpsertClearsPause",
        "SyncPreservesPauseAndLast",
        "sync",
        replacing("SET cron_expr = d.cron_expr,", "SET paused_at = NULL, cron_expr = d.cron_expr,"),
        "sync digest each, pause digest, sync digest odd",
    ),
    Variant(
        "UpsertClearsLast",
        "SyncPreservesPauseAndLast",
        "sync",
        replacing("coalesce(b.fires[cardinality(b.fires)], c.last_enqueued_at)", "b.fires[cardinality(b.fires)]"),
        f"{LEADING}, atomic_enqueue a, sync digest odd",
    ),
    Variant(
        "EditKeepsAnchor",
        "NoRetroactiveFire",
        "sync",
        replacing("greatest($2::timestamptz, c.anchored_at)", "c.anchored_at"),
        "sync digest each, advance_clock, sync digest odd",
    ),
    Variant(
        "EditDropsDue",
        "EditSettles",
        "sync",
        replacing("c.*, d.fires,", "c.*, '{}'::timestamptz[] AS fires,"),
        "sync digest each, advance_clock, sync digest odd",
    ),
    Variant(
        "NoFloor",
        "NoRetroactiveFire",
        "sync",
        replacing("greatest(clock.now, (", "least(clock.now, ("),
        f"{LEADING}, atomic_enqueue a, advance_clock, remove digest, sync digest each",
    ),
    Variant(
        "NaiveDelete",
        "SyncNeverDeletes",
        "sync",
        replacing(
            "), defined AS MATERIALIZED (",
            "), naive AS (DELETE FROM awa.cron_jobs WHERE name NOT IN "
            "(SELECT d ->> 'name' FROM jsonb_array_elements($1::jsonb) AS d)), defined AS MATERIALIZED (",
        ),
        "sync digest each, sync ledger each",
    ),
    Variant(
        "TriggerMovesLast",
        "TriggerLeavesSchedule",
        "trigger",
        replacing(
            "), event AS (",
            "), moved AS (UPDATE awa.cron_jobs SET last_enqueued_at = now FROM clock WHERE name = $1), event AS (",
        ),
        "sync digest each, advance_clock, trigger digest",
    ),
    Variant(
        "RemoveTakesJobs",
        "RemoveLeavesJobs",
        "remove",
        replacing(
            "WITH ",
            "WITH taken AS (DELETE FROM awa.jobs WHERE metadata ->> 'cron_name' = $1), ",
        ),
        f"{LEADING}, atomic_enqueue a, remove digest",
    ),
    Variant(
        "NextButOne",
        "NextNeverLate",
        "atomic_enqueue",
        replacing("next_fire_at = b.next_fire_at", "next_fire_at = b.next_fire_at + interval '1 minute'"),
        f"{LEADING}, atomic_enqueue a",
    ),
    Variant(
        "SyncKeepsNext",
        "NextNeverLate",
        "sync",
        replacing("THEN d.next_fire_at ELSE", "THEN c.next_fire_at + interval '1 minute' ELSE"),
        "sync digest each, sync digest odd",
    ),
]


def play(dsn: str, schema: Schema, steps: str, only: str | None = None) -> None:
    """Take the machine through steps of the model on a real database."""
    with on_postgres(dsn, schema, only) as machine_on_postgres:
        machine = machine_on_postgres()
        machine.open()
        for step in steps.split(", "):
            action, *arguments = step.split()
            machine.perform(action, *arguments)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_broken_statement_is_caught_by_the_property_that_it_breaks(dsn: str, variant: Variant) -> None:
    play(dsn, Schema(), variant.steps)
    with pytest.raises(AssertionError, match=variant.property):
        play(dsn, Broken(variant.statement, variant.edit), variant.steps, only=variant.property)
