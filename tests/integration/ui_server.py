"""Starts ``awa-cron ui`` as users do, and asks it over plain HTTP."""

from __future__ import annotations

import dataclasses
import html
import http.client
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests.integration import commands

TOKEN = "a-token-of-the-tests"


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def secret(self) -> str:
        """The secret that the page's forms hold."""
        found = re.search(r'name="secret" value="([^"]+)"', self.text)
        assert found is not None, "there is no form"
        return found[1]

    @property
    def words(self) -> str:
        """What is read, without tags."""
        return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", self.text).split()))


@dataclasses.dataclass(frozen=True)
class Page:
    """A running page; it signs in by itself unless told not to."""

    link: str
    host: str = "127.0.0.1"

    @property
    def port(self) -> int:
        port = urlsplit(self.link).port
        assert port is not None
        return port

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def opening(self) -> str:
        """The link that signs in."""
        return f"{self.origin}/cron?token={TOKEN}"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: str | None = None,
        signed_in: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {"Cookie": self.cookie} if signed_in else {}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(method, path, body=body, headers=sent | dict(headers or {}))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read().decode())
        finally:
            connection.close()

    def post(self, path: str, fields: Mapping[str, str], *, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form as the page's own would be sent, but for what is given."""
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin} | dict(headers or {})
        sent = {name: value for name, value in sent.items() if value != ""}
        return self.ask(path, method="POST", body=urlencode(fields), headers=sent)

    def change(self, what: str, **fields: str) -> Answer:
        """Change something, with the secret of the page's forms."""
        return self.post(f"/do/{what}", {"secret": self.ask("/cron").secret} | fields)

    @property
    def cookie(self) -> str:
        answer = self.ask(f"/cron?token={TOKEN}", signed_in=False)
        return answer.headers["set-cookie"].partition(";")[0]


@contextmanager
def serving(dsn: str, cwd: Path, *options: str, token: str | None = TOKEN) -> Iterator[Page]:
    """Serve a database's page beside the test, on a port that is free."""
    variables = {"AWA_CRON_DSN": dsn} | ({} if token is None else {"AWA_CRON_UI_TOKEN": token})
    with commands.running("ui", "--port", "0", *options, cwd=cwd, **variables) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        if not link:
            raise AssertionError(process.communicate()[1])
        yield Page(link)
