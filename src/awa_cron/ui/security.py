"""Who may see the page and change things through it: host, token, origin, and the headers of every answer.

A page that acts on a database and listens on a port is reachable from every other page in the same browser. So each
request must name a host that we serve (or a foreign name could be rebound to this address), carry the token, and
if it changes something come from a page of ours and bring the secret that our forms hold.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import hashlib
import hmac
import ipaddress
import json
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from awa_cron.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_TOKEN_LENGTH = 16
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # To other sites nothing; with no-referrer, browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """What one start of the page allows.

    Attributes:
        token: Whoever has it may see everything, and change it unless ``read_only``.
        hosts: Names under which the page may be asked for, without ports.
        any_address: Also under any IP address: it listens on all of the machine's.
        open_figures: Whether ``/metrics`` needs no token.

    Raises:
        InvalidArgument: The token is too short, or is not printable ASCII.
    """

    token: str = dataclasses.field(repr=False)
    port: int
    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    open_figures: bool = True
    read_only: bool = False

    def __post_init__(self) -> None:
        usable(self.token)

    @property
    def cookie(self) -> str:
        """The cookie's name; browsers send a host's cookies to all its ports."""
        return f"awa_cron_{self.port}"

    @functools.cached_property
    def session(self) -> str:
        """What the cookie holds: it proves the token, and does not show it."""
        return self._derived("session")

    @functools.cached_property
    def form_secret(self) -> str:
        """What every form that changes something holds."""
        return self._derived("form")

    def serves(self, host: str) -> bool:
        """Tell whether a ``Host`` header names this page."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.hosts or (self.any_address and _is_address(name))

    def knows(self, token: str) -> bool:
        """Tell whether this is the token."""
        return _same(token, self.token)

    def admits(self, headers: Headers) -> bool:
        """Tell whether a request proves the token, by cookie or, from a program, by ``Authorization: Bearer``."""
        if _same(Request({"type": "http", "headers": headers.raw}).cookies.get(self.cookie, ""), self.session):
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.knows(token.strip())

    def form_is_ours(self, secret: str) -> bool:
        """Tell whether a form was one of this page's."""
        return _same(secret, self.form_secret)

    def sealed(self, values: list[str]) -> str:
        """Return values for a cookie that nobody else can have written."""
        body = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
        return f"{body}.{self._derived('seal:' + body)}"

    def unsealed(self, text: str) -> list[str]:
        """Return what was sealed; nothing if that was somebody else."""
        body, _, seal = text.partition(".")
        if not body or not _same(seal, self._derived("seal:" + body)):
            return []
        try:
            return [str(each) for each in json.loads(base64.urlsafe_b64decode(body))]
        except (ValueError, binascii.Error):
            return []

    def sign_in(self, response: Response) -> Response:
        """Let the browser keep the proof of the token."""
        response.set_cookie(self.cookie, self.session, path="/", httponly=True, samesite="strict")
        return response

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), f"awa_cron ui {purpose}".encode(), hashlib.sha256).hexdigest()


def usable(token: str) -> str:
    """Return a token.

    Raises:
        InvalidArgument: It is too short, or is not printable ASCII.
    """
    if len(token) < MIN_TOKEN_LENGTH or not (token.isascii() and token.isprintable()):
        raise InvalidArgument(
            f"the token must have {MIN_TOKEN_LENGTH} or more characters, of printable ASCII, or it can be guessed"
        )
    return token


class Guard:
    """Everything passes here first.

    Args:
        app: The page.
        rules: What it allows.
        refused: Makes the answer to what it does not.
    """

    def __init__(self, app: ASGIApp, rules: Rules, refused: Callable[[HTTPStatus, str], Response]) -> None:
        self._app = app
        self._rules = rules
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the page answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, send_guarded)

    def _answer(self, request: Request) -> Response | None:
        """Return what is answered instead of the page; None to let it through."""
        rules = self._rules
        if not rules.serves(request.headers.get("host", "")):
            return self._refused(
                HTTPStatus.FORBIDDEN, "this page is not served under that host name (--allow-host adds one)"
            )
        if request.method not in {"GET", "HEAD"} and (reason := self._unwanted(request)):
            return self._refused(HTTPStatus.FORBIDDEN, reason)
        if _is_open(request.url.path, rules):
            return None
        if request.method == "GET" and "token" in request.query_params:
            return self._signed_in(request)
        if not rules.admits(request.headers):
            return self._refused(HTTPStatus.UNAUTHORIZED, "open the link that `awa-cron ui` has printed")
        return None

    def _unwanted(self, request: Request) -> str | None:
        """Return why a request that may change something is refused, whoever sends it; None if it is not."""
        if self._rules.read_only and request.url.path != "/sign-in":
            return "this page is read-only (--read-only)"
        return None if comes_from_here(request.headers) else _whence(request.headers)

    def _signed_in(self, request: Request) -> Response:
        """Keep the token's proof in the cookie, and take the token out of the address."""
        if not self._rules.knows(request.query_params["token"]):
            return self._refused(HTTPStatus.UNAUTHORIZED, "that token is not the one of this start")
        rest = urlencode([pair for pair in parse_qsl(request.url.query) if pair[0] != "token"])
        path = "/" + request.scope["raw_path"].decode("latin-1").lstrip("/")  # never //another.site
        return self._rules.sign_in(RedirectResponse(path + (f"?{rest}" if rest else ""), HTTPStatus.SEE_OTHER))


def comes_from_here(headers: Headers) -> bool:
    """Tell whether a page of ours made the browser send this.

    ``Sec-Fetch-Site`` is the browser's own word. Where it gives none (plain HTTP on a network), its ``Origin`` has
    to be the host that was asked. A program that is no browser and sends neither is refused.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origin = headers.get("origin")
    if origin is None:
        return site is not None
    scheme, _, authority = origin.partition("://")
    return scheme in {"http", "https"} and authority == headers.get("host")


def _whence(headers: Headers) -> str:
    """Return what is wrong with where a request comes from."""
    if "origin" in headers or "sec-fetch-site" in headers:
        return "the request comes from another site"
    return (
        "the request does not say where it comes from: it has no Origin header, which browsers send with the forms "
        "of this page; a program changes things by `awa-cron` or the library"
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_open(path: str, rules: Rules) -> bool:
    figures = path == "/metrics" and rules.open_figures
    return figures or path in {"/health", "/sign-in"} or path.startswith("/static/")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
