"""Completes the names of schedules and queues from the database that AWA_CRON_DSN names, or not at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

import asyncpg
import click
from click.shell_completion import CompletionItem

from awa_cron.sql import Schema

PATIENCE_S = 1.0
"""Somebody waits with a finger on the tab key."""

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def of(what: str) -> Completion:
    """Return a completion of ``schedules`` or ``queues``."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        dsn = os.environ.get("AWA_CRON_DSN")
        if not dsn:
            return []
        with suppress(Exception):  # whatever is wrong, the shell must not be littered with it
            schema = Schema(os.environ.get("AWA_CRON_SCHEMA") or "awa")
            found = asyncio.run(asyncio.wait_for(_names(dsn, schema, what, incomplete), PATIENCE_S))
            return [CompletionItem(name) for name in found if name.isprintable()]
        return []

    return complete


async def _names(dsn: str, schema: Schema, what: str, incomplete: str) -> list[str]:
    connection = await asyncpg.connect(dsn, timeout=PATIENCE_S)
    try:
        rows = await connection.fetch(schema.statement("queries/names"), what, incomplete)
        return [row["name"] for row in rows]
    finally:
        connection.terminate()
