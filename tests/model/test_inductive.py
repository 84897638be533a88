"""The proofs for any number of instances and instants, and that they would notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assurance import SPEC, CannotRunError
from assurance.manifest import read_manifest
from tests.model import broken_models
from tests.model.ledger import record
from tests.model.spec_model import Model
from tests.model.spec_properties import INVARIANTS, STEP_PROPERTIES, invariants, step_checks
from tests.model.spec_state import Frozen, Row, State, Table

pytest.importorskip("z3", reason="the proofs need the extra 'spec'")

from assurance import claims, inductive, symbolic

Plain = dict[str, Any]


@pytest.fixture(scope="module")
def answers() -> list[inductive.Answer]:
    return [inductive.ask(obligation) for obligation in inductive.obligations()]


def test_what_is_claimed_is_proved_and_what_must_break_breaks(answers: list[inductive.Answer]) -> None:
    verdicts = [answer.verdict for answer in answers]
    record("inductive", proved=verdicts.count("unsat"), found=verdicts.count("sat"))

    assert [f"{a.obligation.name}: {a.verdict}" for a in answers if not a.holds] == []
    assert verdicts.count("unsat") >= 2 * 9 * len(symbolic.actions())


def state_of(plain: Plain) -> State:
    """Return a state of one instance and one schedule for the Python model."""
    row, frozen = plain["row"], plain["frozen"]
    read = Frozen(**frozen | {"fires": tuple(frozen["fires"])}) if frozen else None
    return State(
        now=plain["now"],
        rows=Table({"s": Row(**row) if row else None}),
        jobs=Table({"s": Table(plain["jobs"])}),
        triggered=Table({"s": 0}),
        floor=Table({"s": plain["floor"]}),
        lock="i" if plain["held"] else None,
        up=Table({"i": plain["up"]}),
        believes=Table({"i": plain["believes"]}),
        snapshot=Table({"i": Table({"s": read}) if plain["reads"] else None}),
    )


def model_of(kind: type[Model], step: Plain, *, faulty_evaluator: bool) -> Model:
    return kind(
        instances=("i",),
        schedules=("s",),
        definitions={name: set(fires).__contains__ for name, fires in step["definitions"].items()},
        policies={"s": "coalesce" if step["coalesces"] else "catch_up"},
        pass_limit=step["last_instant"] + 1,
        clock_may_slip=True,
        faulty_evaluator=faulty_evaluator,
    )


def parts_of_invariant(state: State) -> dict[str, bool]:
    """IndInv of one schedule, but for LeaderAlive."""
    row, floor, fired = state.rows["s"], state.floor["s"], state.jobs["s"]
    last = None if row is None else row.last
    return {
        "NoDuplicateFire": all(count <= 1 for count in fired.values()),
        "FiredIsPast": all(f <= floor or (last is not None and f <= last) for f in fired),
        "AnchorAboveFloor": row is None or floor <= row.anchor,
        "MarkedHasJob": last is None or last in fired,
    }


@pytest.mark.parametrize("broken", inductive.BROKEN, ids=lambda broken: f"{broken.name}, {broken.claim}")
def test_the_python_model_takes_the_step_that_z3_found_only_if_it_is_broken_too(broken: inductive.Broken) -> None:
    [obligation] = inductive.broken_claims("", [broken])
    step = inductive.ask(obligation).step
    assert step is not None
    before, then = state_of(step["before"]), state_of(step["after"])
    arguments = {"atomic_enqueue": ("i",), "remove": ("s",), "sync": ("s", step["definition"])}[broken.action]
    faulty = not broken.protocol.sound
    model = model_of(getattr(broken_models, broken.name), step, faulty_evaluator=faulty)
    sound = model_of(Model, step, faulty_evaluator=faulty)

    def check(now: State) -> None:
        step_checks(sound, before, broken.action, now, only=broken.claim)
        invariants(sound, now, only=broken.claim)
        assert all(parts_of_invariant(now).values()), broken.claim

    assert all(parts_of_invariant(before).values())
    assert getattr(model, broken.action)(before, *arguments) == then
    with pytest.raises(AssertionError, match=broken.claim):
        check(then)
    check(getattr(sound, broken.action)(before, *arguments) or before)


def test_variants_and_claims_have_the_names_of_the_spec() -> None:
    named = {entry.name for entry in read_manifest() if entry.kind == "must-fail"}
    properties = {each.name for each in (*INVARIANTS, *STEP_PROPERTIES)}

    assert {broken.name for broken in inductive.BROKEN} <= named
    assert {each.name for each in claims.PROPERTIES} <= properties | {"PassEnqueuesEachSchedule"}


def test_a_claim_that_is_false_is_not_proved() -> None:
    weaker = symbolic.Protocol(guards=frozenset({"Advances"}))
    failed = [
        answer
        for obligation in inductive.proof("weaker", weaker)
        if obligation.name.startswith("atomic_enqueue")
        for answer in [inductive.ask(obligation)]
        if not answer.holds
    ]

    assert {answer.obligation.name for answer in failed} == {
        "atomic_enqueue keeps IndInv",
        "atomic_enqueue has FiresAdvance",
        "atomic_enqueue has PausedBlocksEnqueue",
        "atomic_enqueue has NoEarlyFire",
        "atomic_enqueue has NoRetroactiveFire",
    }
    assert all("FAILED" in line for line in inductive.table(failed) if line.startswith("  atomic"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\/ CASFail(i)", r"\/ CASFail(i) \/ Compact(i)"),
        (r"/\ Unpaused(row, frozen)", "/\\ Unpaused(row, frozen)\n    /\\ Lucky(row, frozen)"),
    ],
)
def test_an_action_or_a_guard_that_z3_does_not_know_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    text = (SPEC / "AwaCron.tla").read_text(encoding="utf-8")
    assert text.count(old) >= 1
    (tmp_path / "AwaCron.tla").write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr(symbolic, "SPEC", tmp_path)

    with pytest.raises(CannotRunError, match=r"AwaCron\.tla"):
        symbolic.actions()
