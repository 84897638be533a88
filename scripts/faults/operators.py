"""Operators: pause, resume, trigger and remove as the program says, and deploy releases."""

from __future__ import annotations

import asyncio
from collections import Counter

import awa_cron
from awa_cron.errors import DatabaseError, ScheduleNotFound
from faults.cluster import Cluster
from faults.program import Step

PATIENT = awa_cron.Settings(statement_timeout_s=8.0)


class Operators:
    """Acts through the public client. What fails is asked again, as people do.

    Args:
        cluster: Whose schedules they act on, and whose instances they deploy to.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client: awa_cron.Client | None = None
        self.done: Counter[str] = Counter()
        """Operations that were carried out; one whose answer was lost may have been carried out twice."""
        self.failed: Counter[str] = Counter()
        """Operations given up after all tries."""

    async def act(self, step: Step) -> None:
        """Perform one operation of the program."""
        if step.what == "deploy":
            await self._deploy(step)
        else:
            await self.operate(step.what, step.target)
        self.done[step.what] += 1

    async def operate(self, what: str, schedule: str, *, tries: int = 10) -> None:
        """Pause, resume, trigger or remove one schedule."""
        for _ in range(tries):
            try:
                client = await self._connected()
                await getattr(client, what)(schedule, by="the operator")
            except ScheduleNotFound:
                return
            except DatabaseError:
                await asyncio.sleep(0.3)
            else:
                return
        self.failed[what] += 1

    async def broken(self) -> dict[str, str]:
        """Return the schedules that operators are shown as broken, with the reasons."""
        listed = await (await self._connected()).list_schedules()
        return {each.name: each.broken for each in listed if each.broken is not None}

    async def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            await self._client.__aexit__(None, None, None)

    async def _connected(self) -> awa_cron.Client:
        if self._client is None:
            client = awa_cron.Client(self._cluster.database.dsn, settings=PATIENT)
            await client.__aenter__()
            self._client = client
        return self._client

    async def _deploy(self, step: Step) -> None:
        """Replace instances one after the other: each ends politely, and the new release starts."""
        places = range(len(self._cluster.instances)) if step.target == "all" else [int(step.target)]
        for place in places:
            await self.deploy(place, round(step.amount))

    async def deploy(self, place: int, release: int) -> None:
        """Replace one instance, unless a fault has just ended it: then its next start is the new release."""
        instance = self._cluster.instances[place]
        running = instance.wanted
        instance.module = f"faults.apps.release_{release}:client"
        if running:
            await instance.stop()
            instance.start()
