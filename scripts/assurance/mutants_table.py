"""The table in ``spec/MUTANTS.md``: every mutant, what it breaks, and the test that noticed it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from assurance import SPEC, CannotRunError
from assurance.mutants import Mutant, Mutants

TABLE = SPEC / "MUTANTS.md"
START = "<!-- table of mutants: written by scripts/mutants --update -->"
END = "<!-- end of table -->"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
KILLED_BY = re.compile(r"(\w+): `(\w+)`")


def text_with(mutants: Mutants, killers: Mapping[str, str]) -> str:
    """Return the page with a table of all mutants.

    Args:
        mutants: All of them.
        killers: The test that failed first, by mutant; what is not in it is left as the page has it.
    """
    before, _, after = _parts()
    known = _known(mutants) | dict(killers)
    rows = ["| mutant | file | what it breaks | killed by |", "|---|---|---|---|"]
    rows += [_row(each, known.get(each.name)) for each in mutants.mutants]
    return f"{before}{START}\n\n{_counts(mutants.mutants)}\n\n" + "\n".join(rows) + f"\n\n{END}{after}"


def problems(mutants: Mutants) -> Iterator[str]:
    """Yield where the page and the mutants disagree."""
    if text_with(mutants, {}) != TABLE.read_text(encoding="utf-8"):
        yield "spec/MUTANTS.md is out of step; run scripts/mutants --update"
    known = _known(mutants)
    unmeasured = [m.name for m in mutants.mutants if m.equivalent is None and m.name not in known]
    if unmeasured:
        yield f"spec/MUTANTS.md does not say what kills these; run them with --update: {' '.join(unmeasured)}"


def _known(mutants: Mutants) -> dict[str, str]:
    """Return the killers that the page names, without those that are no longer tests of their suites."""
    suite_of = {each.name: mutants.suites[each.suite] for each in mutants.mutants}
    found: dict[str, str] = {}
    for name, _, _, cell in ROW.findall(_parts()[1]):
        killed_by = KILLED_BY.fullmatch(cell)
        suite = suite_of.get(name)
        if killed_by and suite and killed_by[1] == suite.name and killed_by[2] in suite.file_of:
            found[name] = killed_by[2]
    return found


def _row(mutant: Mutant, killer: str | None) -> str:
    if mutant.equivalent is not None:
        cell = f"nothing: {mutant.equivalent}"
    else:
        cell = f"{mutant.suite}: `{killer}`" if killer else f"{mutant.suite}"
    return f"| `{mutant.name}` | `{mutant.file}` | {mutant.breaks} | {cell} |"


def _counts(mutants: Iterable[Mutant]) -> str:
    suites = Counter(each.suite for each in mutants if each.equivalent is None)
    equivalent = sum(each.equivalent is not None for each in mutants)
    named = ", ".join(f"{name} {count}" for name, count in suites.most_common())
    total = suites.total() + equivalent
    return f"{total} mutants: {suites.total()} that a suite has to kill ({named}), {equivalent} that none can."


def _parts() -> tuple[str, str, str]:
    before, start, rest = TABLE.read_text(encoding="utf-8").partition(START)
    table, end, after = rest.partition(END)
    if not (start and end):
        raise CannotRunError(f"spec/MUTANTS.md lacks a line {START} or {END}")
    return before, table, after
