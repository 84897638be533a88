"""``tests/mutants.toml``: small changes to the library, each with the suite that has to notice it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from assurance import ROOT, CannotRunError

MUTANTS = ROOT / "tests" / "mutants.toml"
LIBRARY = Path("src") / "awa_cron"


@dataclass(frozen=True)
class Suite:
    """A part of the tests that has a name; ``files`` are relative to the repository."""

    name: str
    files: tuple[str, ...]

    @cached_property
    def file_of(self) -> dict[str, str]:
        """Return the file of each test function, and its class if it has one, as pytest joins them."""
        found = {}
        for file in self.files:
            place = file
            for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
                if begins := re.match(r"(?:class (\w+)|\w)", line):
                    place = f"{file}::{begins[1]}" if begins[1] else file
                if test := re.match(r"\s*(?:async )?def (test_\w+)\(", line):
                    found[test[1]] = place
        return found


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: Relative to ``src/awa_cron``.
        old: Text that stands there exactly once; ``new`` takes its place.
        breaks: What no longer holds.
        suite: The suite that has to fail.
        tests: Tests of the suite, by name, also with parameters in brackets, if it need not be run as a whole.
        equivalent: Why nothing can notice it, if so; the suite then has to pass.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    suite: str
    tests: tuple[str, ...] = ()
    equivalent: str | None = None

    @property
    def path(self) -> Path:
        """Return the file, relative to the repository."""
        return LIBRARY / self.file

    def applied(self, text: str) -> str:
        """Return the text of the file with the change."""
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutants:
    """The whole file. ``slow`` names the suites that a sample leaves out."""

    suites: dict[str, Suite]
    slow: tuple[str, ...]
    mutants: tuple[Mutant, ...]

    def sample(self, mutants: list[Mutant], count: int) -> list[Mutant]:
        """Return so many of the mutants, evenly spaced, always the same ones."""
        quick = [each for each in mutants if each.suite not in self.slow]
        size = min(count, len(quick))
        return [quick[i * len(quick) // size] for i in range(size)]

    def arguments(self, mutant: Mutant) -> list[str]:
        """Return what pytest is to run against a mutant."""
        suite = self.suites[mutant.suite]
        return [f"{suite.file_of[_function(test)]}::{test}" for test in mutant.tests] or list(suite.files)


def read_mutants() -> Mutants:
    """Read the mutants, and check that each of them can be applied and run.

    Raises:
        CannotRunError: If one can't.
    """
    content = tomllib.loads(MUTANTS.read_text(encoding="utf-8"))
    suites = {name: Suite(name, _files(patterns)) for name, patterns in content["suites"].items()}
    mutants = [_mutant(entry) for entry in content["mutant"]]
    problems = [*_repeated(mutants), *(problem for each in mutants for problem in _problems(each, suites))]
    if problems:
        raise CannotRunError("tests/mutants.toml: " + "; ".join(problems))
    return Mutants(suites, tuple(content["slow"]), tuple(mutants))


def _files(patterns: list[str]) -> tuple[str, ...]:
    """Return the files that match, without those that match a pattern after ``!``."""
    found: set[str] = set()
    for pattern in patterns:
        matching = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern.removeprefix("!"))}
        found = found - matching if pattern.startswith("!") else found | matching
    return tuple(sorted(found))


def _mutant(entry: dict[str, Any]) -> Mutant:
    try:
        return Mutant(**entry | {"tests": tuple(entry.get("tests", ()))})
    except TypeError as error:
        raise CannotRunError(f"tests/mutants.toml: {entry.get('name', entry)}: {error}") from None


def _function(test: str) -> str:
    """Return a test's name without the parameters in brackets."""
    return test.partition("[")[0]


def _repeated(mutants: list[Mutant]) -> Iterator[str]:
    yield from (f"{name} is there twice" for name, count in Counter(m.name for m in mutants).items() if count > 1)


def _problems(mutant: Mutant, suites: dict[str, Suite]) -> Iterator[str]:
    """Yield why a mutant can't be applied or run."""
    path = ROOT / mutant.path
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(mutant.old) != 1:
        yield f"{mutant.name}: its old text stands {text.count(mutant.old)} times in {mutant.path}, not once"
    elif mutant.applied(text) == text:
        yield f"{mutant.name}: it changes nothing"
    elif path.suffix == ".py":
        try:
            compile(mutant.applied(text), mutant.file, "exec")
        except SyntaxError as error:
            yield f"{mutant.name}: {error}"
    suite = suites.get(mutant.suite)
    if suite is None or not suite.files:
        yield f"{mutant.name}: there is no suite {mutant.suite}"
    else:
        unknown = [test for test in mutant.tests if _function(test) not in suite.file_of]
        yield from (f"{mutant.name}: the suite {mutant.suite} has no {test}" for test in unknown)
