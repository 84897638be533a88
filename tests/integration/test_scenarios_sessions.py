"""What the leader's session asks of the server, so that a vanished host's lock does not stay."""

from __future__ import annotations

import asyncpg
import pytest

from awa_cron import actions
from awa_cron.actions import asking
from awa_cron.errors import DatabaseError, LeadershipLost
from tests.integration.support import HASTY, Session, a_leader

SETTINGS = (
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "tcp_user_timeout",
    "idle_session_timeout",
)


async def test_d06_a_vanished_hosts_lock_is_freed_in_under_a_minute(dsn: str, connection: Session) -> None:
    if await connection.fetchval("SELECT inet_server_addr()") is None:
        pytest.skip("the server is asked through a Unix socket, to which TCP's settings do not apply")
    async with a_leader(dsn) as leader:
        assert await leader.acquire()
        assert leader._connection is not None
        values = {name: await leader._connection.fetchval("SELECT current_setting($1)", name) for name in SETTINGS}
    idle, interval, count, user_ms = (int(values[name]) for name in SETTINGS[:4])
    assert idle + interval * count < 60, "D06: an idle session of a vanished host ends"
    assert 0 < user_ms < 60_000, "D06: one with an answer under way too"
    assert f"{round(HASTY.leader_idle_timeout_s * 1000)}ms" == values["idle_session_timeout"]


async def test_d06_a_ping_without_an_answer_says_so(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_leader(dsn) as leader:
        assert await leader.acquire()
        monkeypatch.setattr(actions, "ping_leader", _never)
        with pytest.raises(LeadershipLost, match="does not answer: TimeoutError"):
            await leader.ping()


async def _never(*_: object, **__: object) -> None:
    raise TimeoutError


@pytest.mark.parametrize("kind", [asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError])
async def test_p05_what_an_old_pooler_does_to_statements_is_told_with_the_remedy(
    kind: type[asyncpg.PostgresError],
) -> None:
    with pytest.raises(DatabaseError, match=r"^claim: .*directly or in session mode$"):
        async with asking("claim"):
            raise kind("prepared statement is gone")


async def test_an_error_without_a_text_is_told_by_its_kind() -> None:
    with pytest.raises(DatabaseError, match=r"^pause: ConnectionResetError$"):
        async with asking("pause"):
            raise ConnectionResetError
