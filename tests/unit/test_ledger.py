"""What the tests measure reaches ``scripts/assure``, and leaves no trace without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model import ledger


def test_records_are_read_back_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "numbers.jsonl"
    monkeypatch.setenv("AWA_CRON_ASSURANCE", str(path))

    ledger.record("machine", steps=12)
    ledger.record("graph", states=3, seconds=0.5)

    machine, graph = ledger.read(path)
    assert {"section": "machine", "steps": 12} == machine
    assert {"section": "graph", "states": 3, "seconds": 0.5} == graph


def test_nothing_is_written_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWA_CRON_ASSURANCE", raising=False)
    monkeypatch.chdir(tmp_path)

    ledger.record("machine", steps=12)

    assert [] == list(tmp_path.iterdir())
    assert [] == ledger.read(tmp_path / "numbers.jsonl")
