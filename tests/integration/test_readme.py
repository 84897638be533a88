"""The README's example does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_example_runs_its_handler_for_each_fire(dsn: str, tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    # Another database, and a schedule that one need not wait for until nine in the morning.
    example = found[1].replace("postgresql://localhost/app", dsn).replace("0 9 * * *", "* * * * * *")
    program = tmp_path / "example.py"
    program.write_text(example, encoding="utf-8")

    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.kill()

    assert all(re.fullmatch(r"digest of \S+ \S+ to ops\n", line) for line in lines), lines
    assert lines[0] != lines[1]
