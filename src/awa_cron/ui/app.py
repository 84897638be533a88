"""The page as an ASGI application: routes, forms, and what an error becomes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from awa_cron import cronexpr
from awa_cron.errors import (
    AwaCronError,
    DatabaseError,
    DeadJobNotFound,
    InvalidArgument,
    InvalidSchedule,
    ScheduleNotFound,
    SchemaMismatch,
    UnknownTimezone,
)
from awa_cron.ui import monitor, pages, words
from awa_cron.ui.changes import CHANGES
from awa_cron.ui.desk import ZONE, Desk, Reader
from awa_cron.ui.drawn import Drawn, static
from awa_cron.ui.security import Guard, Rules

log = logging.getLogger(__name__)

MAX_FORM_BYTES: Final = 65_536
YEAR_S: Final = 365 * 86_400
SAID: Final = "awa_cron_said"
"""A cookie with the sentence that the last change left, for the next page."""
LABEL: Final = "awa_cron_label"
"""A cookie with what the reader last called themselves."""

Page: TypeAlias = Callable[[Desk, Reader, Request], Awaitable[pages.Shown]]


def create_app(desk: Desk, rules: Rules, login: str) -> ASGIApp:
    """Return the page.

    Args:
        desk: The client behind it; closed when the server stops.
        rules: Who may do what.
        login: What the history calls whoever has not said otherwise.
    """
    return _App(desk, rules, login).guarded()


class _App:
    def __init__(self, desk: Desk, rules: Rules, login: str) -> None:
        self._desk = desk
        self._rules = rules
        self._login = login
        self._drawn = Drawn(rules)

    def guarded(self) -> ASGIApp:
        def page(path: str, show: Page) -> Route:
            async def endpoint(request: Request) -> Response:
                return await self._show(request, show)

            return Route(path, endpoint, methods=["GET"])

        routes = [
            Route("/", _home, methods=["GET"]),
            page("/cron", pages.schedules),
            page("/cron/{name:path}", pages.schedule),
            page("/queues", pages.queues),
            page("/dead", pages.dead),
            page("/history", pages.history),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/zone", _zone, methods=["GET"]),
            Route("/do/{change}", self._change, methods=["POST"]),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/static/{file}", static, methods=["GET"]),
        ]

        async def unknown(request: Request, error: Exception) -> Response:
            status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
            return self._refused(status, f"{request.method} {words.printable(request.url.path)}: {status.phrase}")

        app = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers={HTTPException: unknown})
        app.router.redirect_slashes = False
        return Guard(app, self._rules, self._refused)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._desk.close()

    async def _show(self, request: Request, show: Page) -> Response:
        reader = Reader.of(request.cookies, self._label(request))
        try:
            _holds_text(request)
            shown = await show(self._desk, reader, request)
        except AwaCronError as error:
            return self._failed(error)
        said = self._rules.unsealed(request.cookies.get(SAID, ""))
        response = self._drawn.page(shown, reader, said=said[0] if said else "", path=_path(request))
        if said:
            response.delete_cookie(SAID)
        return response

    async def _metrics(self, _request: Request) -> Response:
        try:
            return await monitor.metrics(self._desk)
        except AwaCronError as error:
            return self._failed(error)

    async def _health(self, _request: Request) -> Response:
        return await monitor.health(self._desk)

    async def _change(self, request: Request) -> Response:
        try:
            form = await _form(request)
            if not self._rules.form_is_ours(form.get("secret", "")):
                return self._refused(HTTPStatus.FORBIDDEN, "the form is an old one: go back, reload, try again")
            change = CHANGES.get(request.path_params["change"])
            if change is None:
                return self._refused(HTTPStatus.NOT_FOUND, "there is no such change")
            said = await change(await self._desk.client(), form)
            self._desk.forget()
        except AwaCronError as error:
            return self._failed(error)
        response = RedirectResponse(_back(form.get("back", "")), HTTPStatus.SEE_OTHER)
        response.set_cookie(SAID, self._rules.sealed([said]), httponly=True, samesite="strict")
        if "by" in form:
            response.set_cookie(LABEL, self._rules.sealed([form["by"]]), httponly=True, samesite="strict")
        return response

    async def _sign_in(self, request: Request) -> Response:
        try:
            token = (await _form(request)).get("token", "").strip()
        except InvalidArgument as error:
            return self._failed(error)
        if not self._rules.knows(token):
            return self._refused(HTTPStatus.UNAUTHORIZED, "that token is not the one of this start")
        return self._rules.sign_in(RedirectResponse("/cron", HTTPStatus.SEE_OTHER))

    def _label(self, request: Request) -> str:
        return next(iter(self._rules.unsealed(request.cookies.get(LABEL, ""))), self._login)

    def _failed(self, error: AwaCronError) -> Response:
        status = _status(error)
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            log.warning("cannot show the page", extra={"error": str(error)})
        return self._refused(status, str(error))

    def _refused(self, status: HTTPStatus, reason: str) -> Response:
        return self._drawn.refusal(status, reason)


def _status(error: AwaCronError) -> HTTPStatus:
    match error:
        case ScheduleNotFound() | DeadJobNotFound():
            return HTTPStatus.NOT_FOUND
        case InvalidArgument() | InvalidSchedule():
            return HTTPStatus.BAD_REQUEST
        case DatabaseError() | SchemaMismatch():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR


def _holds_text(request: Request) -> None:
    """Refuse an address that no name can be in.

    Raises:
        InvalidArgument: A zero byte is in it, which Postgres stores in no text.
    """
    if any("\0" in text for text in (request.scope["path"], *request.query_params.values())):
        raise InvalidArgument("the address holds a zero byte (%00), which no name can hold")


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, the last of each name.

    Raises:
        InvalidArgument: It is not one, or too long.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise InvalidArgument("this takes a form: application/x-www-form-urlencoded")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise InvalidArgument(f"the form is longer than {MAX_FORM_BYTES:,} bytes")
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise InvalidArgument("the form cannot be read: send UTF-8, at most 50 fields") from None
    if any("\0" in text for pair in fields for text in pair):
        raise InvalidArgument("the form holds a zero byte")
    return dict(fields)


def _back(path: str) -> str:
    """Return where to go after a change: a page of ours, whatever the form says."""
    ours = path.startswith(("/cron", "/queues", "/dead", "/history")) and "\\" not in path and path.isprintable()
    return path if ours else "/cron"


def _path(request: Request) -> str:
    """Return the address of a page, without what was asked on it."""
    path: str = request.scope["raw_path"].decode("latin-1")
    query = "&".join(part for part in request.url.query.split("&") if part and not part.startswith("ask="))
    return path + (f"?{query}" if query else "")


async def _zone(request: Request) -> Response:
    """Remember the reader's time zone; it is theirs, and changes nothing in the database."""
    response = RedirectResponse(_back(request.query_params.get("back", "")), HTTPStatus.SEE_OTHER)
    with suppress(UnknownTimezone):
        named = cronexpr.zone(request.query_params.get("zone", "").strip()).key
        response.set_cookie(ZONE, named, max_age=YEAR_S, samesite="strict")
    return response


async def _home(_request: Request) -> Response:
    return RedirectResponse("/cron", HTTPStatus.SEE_OTHER)
