"""``spec/manifest.json``: what TLC has to say of each configuration, and the README's tables made of it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from assurance import SPEC, CannotRunError

CFGS = SPEC / "cfg"
MANIFEST = SPEC / "manifest.json"
README = SPEC / "README.md"
TABLES_START = "<!-- tables of configurations: written by scripts/tlc --update -->"
TABLES_END = "<!-- end of tables -->"


MUST_PASS = {"safety", "liveness"}
QUICK_STATES = 12_500
"""A run of more is left to the full form, unless it is the only one of its sort."""


@dataclass(frozen=True)
class Expectation:
    """One line of the manifest: a configuration of a module and what TLC has to say of it.

    `distinct_states` and `depth` are compared where TLC explores everything; where a property is violated,
    `depth` is the length of the counterexample (none is given for temporal ones, whose length is arbitrary).
    `seconds` is for information.
    """

    name: str
    module: str
    kind: str
    violates: str | None
    distinct_states: int | None
    depth: int | None
    seconds: float | None

    @property
    def wanted(self) -> str:
        """Return the outcome in the words of ``Outcome.result``."""
        return "no error" if self.violates is None else f"{self.violates} violated"

    @property
    def cfg(self) -> str:
        """Return the text of the configuration."""
        return (CFGS / f"{self.name}.cfg").read_text(encoding="utf-8")

    @property
    def about(self) -> str:
        """Return the comment that opens the cfg: what it is for."""
        comment = re.match(r"(?:\\\*.*\n)*", self.cfg)
        return " ".join(line.removeprefix("\\*").strip() for line in comment[0].splitlines()) if comment else ""


def listed_properties(cfg: str) -> tuple[list[str], list[str]]:
    """Return the names under INVARIANT(S) and under PROPERTY / PROPERTIES in the text of a cfg."""
    words = re.sub(r"\\\*.*", "", cfg).split()
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for word in words:
        if word.isupper() and word.isalpha() and len(word) > len("TRUE") + 1:
            current = sections.setdefault(word, [])
        else:
            current.append(word)
    invariants = sections.get("INVARIANT", []) + sections.get("INVARIANTS", [])
    return invariants, sections.get("PROPERTY", []) + sections.get("PROPERTIES", [])


def read_manifest() -> list[Expectation]:
    """Read the manifest and check that it, the cfgs and the modules speak of the same things.

    Raises:
        CannotRunError: If they don't.
    """
    expectations = [expectation_of(entry) for entry in json.loads(MANIFEST.read_text(encoding="utf-8"))]
    names = [expectation.name for expectation in expectations]
    files = {path.stem for path in CFGS.glob("*.cfg")}
    if set(names) != files:
        raise CannotRunError(f"In spec/manifest.json or in spec/cfg, but not in both: {sorted({*names} ^ files)}")
    if len(names) != len(files):
        raise CannotRunError(f"Twice in spec/manifest.json: {sorted({n for n in names if names.count(n) > 1})}")
    for contradiction in contradictions(expectations):
        raise CannotRunError(contradiction)
    return expectations


def expectation_of(entry: dict[str, Any]) -> Expectation:
    """Read one line of the manifest."""
    wanted = {field.name for field in fields(Expectation)}
    if entry.keys() != wanted:
        raise CannotRunError(f"spec/manifest.json: {sorted(entry.keys() ^ wanted)} missing or unknown in {entry}")
    return Expectation(**entry)


def contradictions(expectations: Iterable[Expectation]) -> Iterator[str]:
    """Yield what a cfg and its line in the manifest disagree about."""
    for expectation in expectations:
        invariants, properties = listed_properties(expectation.cfg)
        listed = invariants + properties
        if not (SPEC / f"{expectation.module}.tla").is_file():
            yield f"{expectation.name} is of the module {expectation.module}, which is not in spec"
        if expectation.violates and listed != [expectation.violates]:
            yield f"{expectation.name}.cfg must list {expectation.violates} alone, not {listed}"
        if expectation.kind == "liveness" and len(listed) != 1:
            yield f"{expectation.name}.cfg must list one temporal property, not {listed}"


def write_manifest(expectations: Iterable[Expectation]) -> None:
    """Write the manifest, one configuration a line."""
    lines = ",\n".join(f"  {json.dumps(asdict(expectation))}" for expectation in expectations)
    MANIFEST.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def by_module(expectations: Iterable[Expectation]) -> dict[str, list[Expectation]]:
    """Return the configurations of each module, in the manifest's order."""
    modules: dict[str, list[Expectation]] = {}
    for expectation in expectations:
        modules.setdefault(expectation.module, []).append(expectation)
    return modules


def sample(chosen: list[Expectation]) -> list[Expectation]:
    """Return what must pass and is not large, of all else every sixth, and what keeps the sample whole.

    That is the shortest of each module and kind, and of each property the shortest variant that breaks it.
    """
    shortest: dict[tuple[str, str], Expectation] = {}
    for e in sorted(chosen, key=lambda e: (e.seconds or math.inf, e.name)):
        shortest.setdefault((e.module, e.kind), e)
        if e.kind == "must-fail" and e.violates:
            shortest.setdefault(("breaks", e.violates), e)
    others = [e for e in chosen if e.kind not in MUST_PASS]
    small = [e for e in chosen if e.kind in MUST_PASS and (e.distinct_states or 0) <= QUICK_STATES]
    kept = {e.name for e in (*shortest.values(), *small, *others[::6])}
    return [e for e in chosen if e.name in kept]


def left_out(all_of_them: list[Expectation], chosen: list[Expectation]) -> str:
    """Say how many of each kind a sample has left out."""
    everything, kept = (Counter(e.kind for e in each) for each in (all_of_them, chosen))
    parts = [f"{everything[kind] - kept[kind]} of {everything[kind]} {kind}" for kind in everything]
    return f"Left out, for the full run: {', '.join(parts)}"


def readme_with(expectations: Iterable[Expectation]) -> str:
    """Return the README's text with a table for each module, where the README marks the place.

    Raises:
        CannotRunError: If it does not.
    """
    before, start, rest = README.read_text(encoding="utf-8").partition(TABLES_START)
    _, end, after = rest.partition(TABLES_END)
    if not (start and end):
        raise CannotRunError(f"spec/README.md lacks a line {TABLES_START} or {TABLES_END}")
    tables = [f"### `{module}`\n\n{table(entries)}\n\n" for module, entries in by_module(expectations).items()]
    return f"{before}{start}\n\n{''.join(tables)}{end}{after}"


def table(expectations: Iterable[Expectation]) -> str:
    """Return the README's table of one module's configurations."""
    rows = ["| configuration | kind | expected | states | depth | what it is |", "|---|---|---|---:|---:|---|"]
    for expectation in expectations:
        cells = [
            f"`{expectation.name}`",
            expectation.kind,
            "no error" if expectation.violates is None else f"violates `{expectation.violates}`",
            "" if expectation.distinct_states is None else f"{expectation.distinct_states:,}",
            "" if expectation.depth is None else str(expectation.depth),
            expectation.about,
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
