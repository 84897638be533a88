"""What the page can change: each a form's POST, each a verb of the client, each answered with a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from awa_cron.client import Client
from awa_cron.errors import InvalidArgument

Form: TypeAlias = Mapping[str, str]
Change: TypeAlias = Callable[[Client, Form], Awaitable[str]]


def field(form: Form, name: str) -> str:
    """Return what a form says.

    Raises:
        InvalidArgument: It says nothing there.
    """
    try:
        return form[name]
    except KeyError:
        raise InvalidArgument(f"the form lacks {name!r}") from None


def label(form: Form) -> str | None:
    """Return who acts, for the history."""
    return form.get("by", "").strip() or None


async def pause(client: Client, form: Form) -> str:
    """Pause a schedule."""
    name = field(form, "name")
    changed = await client.pause(name, by=label(form))
    return f"{name} is paused." if changed else f"{name} was paused already; its label stays."


async def resume(client: Client, form: Form) -> str:
    """Resume a schedule."""
    name = field(form, "name")
    changed = await client.resume(name, by=label(form))
    return f"{name} fires again." if changed else f"{name} was not paused."


async def trigger(client: Client, form: Form) -> str:
    """Make one job of a schedule now."""
    name = field(form, "name")
    job = await client.trigger(name, by=label(form))
    return f"Job {job.id} of {name} waits in queue {job.queue}."


async def remove(client: Client, form: Form) -> str:
    """Delete a schedule."""
    name = field(form, "name")
    await client.remove(name, by=label(form))
    return f"{name} is removed; its jobs stay."


async def cancel(client: Client, form: Form) -> str:
    """Cancel a schedule's jobs."""
    name, running = field(form, "name"), form.get("running") == "yes"
    found = await client.cancel_jobs(name, running=running, by=label(form))
    said = f"{name}: {found.waiting} cancelled before they began"
    if running:
        return f"{said}, {found.signalled} told to stop."
    return f"{said}; {found.running} run and go on." if found.running else f"{said}."


async def pause_queue(client: Client, form: Form) -> str:
    """Hand out no more of a queue's jobs."""
    queue = field(form, "queue")
    changed = await client.pause_queue(queue, by=label(form))
    return f"Queue {queue} is paused." if changed else f"Queue {queue} was paused already; its label stays."


async def resume_queue(client: Client, form: Form) -> str:
    """Hand out a queue's jobs again."""
    queue = field(form, "queue")
    changed = await client.resume_queue(queue, by=label(form))
    return f"Queue {queue} hands out its jobs again." if changed else f"Queue {queue} was not paused."


async def retry_dead(client: Client, form: Form) -> str:
    """Give dead jobs a second life: one, or all of a queue."""
    done = await client.retry_dead(_ids(form), queue=form.get("queue"), by=label(form))
    return f"{_jobs(done)} again."


async def purge_dead(client: Client, form: Form) -> str:
    """Delete dead jobs: one, or all of a queue."""
    done = await client.purge_dead(_ids(form), queue=form.get("queue"), by=label(form))
    return f"{len(done)} dead {'job is' if len(done) == 1 else 'jobs are'} deleted."


CHANGES: Final[Mapping[str, Change]] = {
    "pause": pause,
    "resume": resume,
    "trigger": trigger,
    "remove": remove,
    "cancel": cancel,
    "pause-queue": pause_queue,
    "resume-queue": resume_queue,
    "retry-dead": retry_dead,
    "purge-dead": purge_dead,
}


def _ids(form: Form) -> list[int] | None:
    if "id" not in form:
        field(form, "queue")  # all that are dead is more than one click should do
        return None
    text = form["id"]
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidArgument(f"job id {text!r}: it must be a whole number")
    return [int(text)]


def _jobs(done: list[int]) -> str:
    return f"Job {done[0]} waits" if len(done) == 1 else f"{len(done)} jobs wait"
