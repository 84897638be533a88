"""What scripts/bench writes: tables and a plot that say what was measured, and what was not."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from awa_cron import cronexpr
from benchmarks import bench, measure, place, plan, plot, report
from benchmarks.filling import expression
from benchmarks.gauges import percentile
from benchmarks.plan import Measurement

DOCS = Path(__file__).resolve().parents[2] / "docs"
DUE = datetime(2026, 2, 28, 23, 59, 58, tzinfo=UTC)


def result(count: int, subject: str = "awa_cron", seconds: float | None = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "case": "herd",
        "subject": subject,
        "variant": "alike expressions",
        "arguments": {"count": count},
        "values": {} if seconds is None else {"seconds": seconds},
        "problem": None,
    } | more


def test_the_page_and_its_plot_say_what_the_results_say() -> None:
    results = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert report.replaced(page, report.tables(results)) == page, (
        "run scripts/bench --from docs/benchmarks.json --write"
    )
    assert plot.growth(results["results"]) == (DOCS / "benchmarks.svg").read_text(encoding="utf-8")


def test_a_subject_that_could_not_be_measured_is_in_the_table_with_the_reason() -> None:
    missing = result(1_000, "awa-pg", None, problem="not installed: No module named 'awa'")
    assert "| awa-pg | alike expressions | not measured: not installed: No module named 'awa' |" in report.tables(
        {"at": "now", "machine": machine(), "results": [missing]}
    )


def test_the_ratio_is_to_the_bare_statement_of_the_same_number() -> None:
    found = [result(10, "floor", 2.0), result(10, seconds=3.0), result(20, "floor", 1.0)]
    lines = report.tables({"at": "now", "machine": machine(), "results": found}).splitlines()
    (ours,) = [line for line in lines if "| awa_cron |" in line]
    assert "| 10 | awa_cron | alike expressions | 3 | 3 | 1.50 |" in ours


@pytest.mark.parametrize(("load", "told"), [(0.02, False), (0.4, True), (None, False)])
def test_a_run_beside_others_is_marked(load: float | None, told: bool) -> None:
    text = report.tables({"at": "now", "machine": machine() | {"busy_before": load}, "results": []})
    assert told == ("Others were at work" in text)


def machine() -> dict[str, Any]:
    names = ("processor", "cores", "memory_gb", "system", "python", "postgres")
    return dict.fromkeys(names, "?") | {"settings": {}}


def test_the_plot_is_a_picture_also_of_one_point() -> None:
    for found in ([], [result(1_000)], [result(1_000), result(100_000, seconds=0.02)]):
        root = ET.fromstring(plot.growth(found))
        assert len(found) == len(root.findall(".//{http://www.w3.org/2000/svg}circle"))


@pytest.mark.parametrize("variety", ["alike", "distinct"])
def test_every_expression_of_a_herd_fires_at_its_second(variety: Any) -> None:
    for number in range(0, 400_000, 9_973):
        (fire,) = cronexpr.next_fires(
            expression(DUE, number, variety), "UTC", after=DUE.replace(second=57), count=1
        )
        assert DUE == fire


def test_distinct_expressions_are_distinct() -> None:
    assert 100_000 == len({expression(DUE, number, "distinct") for number in range(100_000)})


def test_whatever_is_planned_can_be_performed() -> None:
    for planned in (*plan.quick(), *plan.full()):
        assert planned.place in measure.PLACES
    assert {each.case for each in plan.quick()} == {each.case for each in plan.full()}


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert (1.0, 51.0, 100.0) == tuple(percentile(values, part) for part in (0, 0.5, 1))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--quick", "--json", "{place}"), "cannot be written"),
        (("--quick", "--json", "{place}/missing/x.json"), "cannot be written"),
        (("--from", "{place}/missing.json"), "No such file"),
        (("--from", __file__), "is not what --json has written"),
        (("--from", "{place}/x.json", "--only", "idle"), "leave one out"),
        (("--from", "{place}/other.json"), "is not what --json has written"),
        (("--quick", "--write"), "leave one out"),
        (("--only", "nonsense"), "it is one of"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_measured(
    arguments: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "other.json").write_text("[]")
    monkeypatch.setattr("sys.argv", ["bench", *(each.format(place=tmp_path) for each in arguments)])
    monkeypatch.setattr("benchmarks.place.server", lambda: pytest.fail("a server was started"))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        bench.main()
    assert 2 == ended.value.code
    assert told in capsys.readouterr().err


def test_what_is_compared_is_measured_in_turns_and_what_fails_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    answers: dict[str, list[float | str]] = {
        "floor": [5.0, 1.0, 3.0],
        "ours": [2.0, "ended with status 1"],
        "peer": [7.0],
    }

    def once(_: str, one: Measurement) -> dict[str, float | None] | str:
        taken.append(one.subject)
        found = answers[one.subject].pop(0)
        return found if isinstance(found, str) else {"seconds": found}

    monkeypatch.setattr(bench, "_once", once)
    monkeypatch.setattr(place, "database", nullcontext)
    monkeypatch.setattr(place, "machine", lambda _: {})
    herds = [
        Measurement(case="herd", subject=name, place="", variant="", arguments={"count": 10}, runs=runs)
        for name, runs in (("floor", 3), ("ours", 3), ("peer", 1))
    ]
    results = bench.run("dsn", herds)["results"]
    assert ["floor", "ours", "peer", "floor", "ours", "floor"] == taken
    assert [{"seconds": 3.0}, {"seconds": 2.0}, {"seconds": 7.0}] == [each["values"] for each in results]
    assert [None, "ended with status 1", None] == [each["problem"] for each in results]
