"""The project's own environment, made by ``scripts/venv``: a script goes on in it where this one lacks something.

Imports nothing that has to be installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

from assurance import ROOT


def need(extras: str, *packages: str) -> None:
    """Start this script again in the environment with these extras, unless the packages are here.

    Ends the process with status 2 if the environment cannot be made; ``scripts/venv`` has said why.
    """
    if any(importlib.util.find_spec(package) is None for package in packages):
        python = _made(extras)
        if python != sys.executable:
            os.execv(python, [python, *sys.argv])  # noqa: S606


def run_module(extras: str, module: str) -> None:
    """Go on as a module of ``scripts``, in the environment with these extras."""
    python = _made(extras)
    os.environ["PYTHONPATH"] = str(ROOT / "scripts")
    os.execv(python, [python, "-m", module, *sys.argv[1:]])  # noqa: S606


def _made(extras: str) -> str:
    made = subprocess.run([ROOT / "scripts" / "venv", extras], stdout=subprocess.PIPE, check=False)
    if made.returncode != 0:
        sys.exit(2)
    return made.stdout.decode().strip()
