"""From ``MODULE:CLIENT`` to the client, with an error of its own for each way in which that can go wrong."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from types import ModuleType

from awa_cron.cli.failure import Failed, Misused
from awa_cron.client import Client


def client(target: str) -> Client:
    """Import a module, with the current directory on the path, and return the client in it.

    Args:
        target: ``MODULE:CLIENT``.

    Raises:
        Misused: There is no such module, no such name in it, or it is no client.
        Failed: The module raised.
    """
    module_name, colon, name = target.partition(":")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise Misused(f"{target!r} names a file: name the module, as an import does: {dotted}:{name or 'client'}")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module_name.split(".")):
        raise Misused(f"{target!r} is not MODULE:CLIENT, such as myapp.jobs:client")
    module = _imported(module_name)
    clients = sorted(key for key, value in vars(module).items() if isinstance(value, Client))
    has = f"its clients: {', '.join(clients)}" if clients else "it has no client at all"
    if not hasattr(module, name):
        raise Misused(f"module {module_name!r} has no {name!r}; {has}")
    found = getattr(module, name)
    if not isinstance(found, Client):
        raise Misused(
            f"{target!r} is a {type(found).__name__}, not an awa_cron.Client; of module {module_name!r}: {has}"
        )
    return found


def _imported(name: str) -> ModuleType:
    here = os.getcwd()  # noqa: PTH109
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise Misused(
                f"there is no module {error.name!r} in {here!r} or in this environment: "
                "run awa-cron where `python -c 'import …'` finds it"
            ) from error
        raise _failed(name, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> Failed:
    """Say where in the user's own code it happened: the last frame outside this package and the import system."""
    if isinstance(error, SyntaxError):
        return Failed(f"cannot import {name!r}: {error.filename}, line {error.lineno}: {error.msg}")
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen", package)) and frame.filename != importlib.__file__
    ]
    where = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
    said = " ".join(str(error).split())
    return Failed(f"cannot import {name!r}: {where}{type(error).__name__}{': ' if said else ''}{said}")
