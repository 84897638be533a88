"""One instance's claim to lead: a dedicated session, the lock that it holds, and the doubt about both.

Spec: AcquireLeader, PingLeader, LoseLeader, DropSession.
"""

from __future__ import annotations

import asyncio
import logging

import asyncpg

from awa_cron import actions, telemetry
from awa_cron.database import Database
from awa_cron.errors import DatabaseError, LeadershipLost
from awa_cron.sql import DRIVER_ERRORS, POOLER, told

log = logging.getLogger(__name__)


class Leader:
    """The leader's session of one instance; at most one at a time.

    Args:
        database: Where to connect.
        actor: This instance, for the event log.
    """

    def __init__(self, database: Database, actor: str) -> None:
        self._database = database
        self._actor = actor
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._lost = asyncio.Event()
        self.backend_pid: int | None = None
        """Server process that holds the lock; None while this instance does not lead."""

    async def acquire(self) -> bool:
        """Try once to become the leader; False while another session holds the lock.

        Raises:
            DatabaseError: The database cannot be asked.
        """
        if self._connection is None or self._connection.is_closed():
            await self._connect()
        assert self._connection is not None
        try:
            async with asyncio.timeout(self._database.settings.ping_timeout_s):
                found = await actions.acquire_leader(self._connection, self._database.schema, actor=self._actor)
        except TimeoutError as error:
            self.abandon()
            raise DatabaseError("acquire_leader: no answer in time") from error
        except BaseException:
            self.abandon()
            raise
        if found.holds_lock:
            self.backend_pid = found.backend_pid
            telemetry.leader_changed("acquired")
        return found.holds_lock

    async def ping(self) -> None:
        """Make sure that this session still holds the lock; on any doubt, cut it.

        Raises:
            LeadershipLost: It does not, or did not answer in time.
        """
        if self._connection is None:
            raise LeadershipLost("the leader's session is gone")
        try:
            async with asyncio.timeout(self._database.settings.ping_timeout_s):
                found = await actions.ping_leader(self._connection, self._database.schema)
        except (DatabaseError, TimeoutError) as error:
            self.abandon()
            raise LeadershipLost(f"the leader's session does not answer: {told(error)}") from error
        except BaseException:
            self.abandon()
            raise
        if found.holds_lock and found.backend_pid == self.backend_pid:
            return
        other = found.backend_pid != self.backend_pid
        self.abandon()
        raise LeadershipLost(
            f"another backend answers for the leader's session: {POOLER}"
            if other
            else "the leader's session no longer holds the lock"
        )

    async def wait_lost(self) -> None:
        """Wait until the session ends.

        Raises:
            LeadershipLost: Always, in the end.
        """
        await self._lost.wait()
        raise LeadershipLost("the leader's session has ended")

    async def step_down(self) -> None:
        """Give the lock back and close the session; if that takes too long, cut it."""
        connection = self._connection
        if connection is None:
            return
        try:
            async with asyncio.timeout(self._database.settings.ping_timeout_s):
                if self.backend_pid is not None:
                    await actions.lose_leader(connection, self._database.schema, actor=self._actor)
                await connection.close()
        except (DatabaseError, *DRIVER_ERRORS) as error:
            log.info("the leader's session did not close politely", extra={"error": str(error)})
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Cut the session at once: the server then frees the lock, and nothing here waits for it."""
        connection, self._connection = self._connection, None
        if self.backend_pid is not None:
            telemetry.leader_changed("lost")
        self.backend_pid = None
        self._lost.set()
        if connection is not None and not connection.is_closed():
            connection.terminate()

    async def _connect(self) -> None:
        settings = self._database.settings
        connection = await self._database.dedicated(
            "leader",
            # A server-wide timeout must not free the lock of a leader that pings; one that has stopped pinging,
            # frozen or unreachable, must not keep it (spec/decisions/0007-leader-lease.md).
            idle_session_timeout=f"{round(settings.leader_idle_timeout_s * 1000)}ms",
            tcp_keepalives_idle="10",
            tcp_keepalives_interval="5",
            tcp_keepalives_count="3",
            # Probes are not sent while an answer waits to be acknowledged; that wait is bounded too.
            tcp_user_timeout="25s",
        )
        self._lost = asyncio.Event()
        lost = self._lost
        connection.add_termination_listener(lambda _: lost.set())
        self._connection = connection
