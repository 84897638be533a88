"""Templates to HTML, and the files beside them. Everything is escaped; nothing comes from elsewhere."""

from __future__ import annotations

import functools
import hashlib
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Final

import jinja2
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from awa_cron.ui import words

if TYPE_CHECKING:
    from starlette.requests import Request

    from awa_cron.ui.desk import Reader
    from awa_cron.ui.pages import Shown
    from awa_cron.ui.security import Rules

_STATIC: Final = resources.files("awa_cron.ui") / "static"
_TYPES: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_TITLES: Final = {
    HTTPStatus.BAD_REQUEST: "That cannot be done",
    HTTPStatus.UNAUTHORIZED: "This page needs its token",
    HTTPStatus.FORBIDDEN: "Refused",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database cannot be used",
}
LIVE_EVERY_S: Final = 5


class Drawn:
    """Makes pages.

    Args:
        rules: Whether there are forms, and the secret in them.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("awa_cron.ui"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {
            "words": words,
            "version": _version(),
            "read_only": rules.read_only,
            "secret": "" if rules.read_only else rules.form_secret,
            "live_every_s": LIVE_EVERY_S,
        }
        self._templates.filters |= {
            "printable": words.printable,
            "compact": words.compact,
            "iso": words.iso,
            "capital": words.capital,
        }

    def page(self, shown: Shown, reader: Reader, *, said: str, path: str) -> Response:
        """Return a page."""
        template = self._templates.get_template(shown.template)
        text = template.render(shown.context, reader=reader, now=shown.now, said=said, path=path)
        return HTMLResponse(text)

    def refusal(self, status: HTTPStatus, reason: str) -> Response:
        """Return a page that says why there is none."""
        template = self._templates.get_template("refusal.html")
        title = _TITLES.get(status, status.phrase)
        return HTMLResponse(template.render(status=status, title=title, reason=reason), status)


async def static(request: Request) -> Response:
    """Return a style sheet, script or picture of the page; by an address that changes when it does."""
    name = request.path_params["file"]
    if name not in _TYPES:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Response(_file(name), media_type=_TYPES[name], headers={"Cache-Control": "max-age=31536000, immutable"})


@functools.cache
def _file(name: str) -> bytes:
    return (_STATIC / name).read_bytes()


def _version() -> str:
    digest = hashlib.sha256(b"".join(_file(name) for name in _TYPES))
    return digest.hexdigest()[:12]
