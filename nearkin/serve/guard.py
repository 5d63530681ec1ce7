"""Who may ask: the checks that every request passes before anything else sees it.

A page on another site can make the browser of a person send requests here. It cannot lie about Host and Origin, so both
are checked: Host against names that point elsewhere today and here tomorrow (DNS rebinding), Origin and the browser's own
word (Sec-Fetch-Site) against requests that another page makes. Where others can reach the server, a token is asked for.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

COOKIE = "nearkin"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
SAFE = ("GET", "HEAD")

Scope = dict[str, Any]


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The name in a Host header, without its port, in small letters; "" where it is none.

    >>> host_name("LocalHost:8517"), host_name("[::1]:80"), host_name("a@b")
    ('localhost', '::1', '')
    """
    if not header or any(sign in header for sign in "/@?#\\ "):
        return ""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


class Guard:
    """An ASGI application around another: refuses what may not come in, and adds the headers that keep a page closed."""

    def __init__(self, inner: Any, *, host: str = "127.0.0.1", token: str = "") -> None:
        self.inner, self.token = inner, token
        self.local = is_local(host)
        self.names = {"localhost"} if self.local else {"localhost", socket.gethostname().lower(), host.lower()}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
            return
        if scope["type"] != "http":  # no other kind is served
            await send({"type": "websocket.close", "code": 1008})
            return

        async def sealed(message: Scope) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in given)]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self.refusal(scope, headers)
        if refusal is not None:
            await _answer(sealed, *refusal)
        elif self.token and self._asked_with_token(scope):
            await _answer(sealed, 303, "", self._cookie(scope))
        else:
            await self.inner(scope, receive, sealed)

    def refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and sentence for a request that may not come in; None for one that may."""
        name = host_name(headers.get("host", ""))
        if sum(key == b"host" for key, _ in scope["headers"]) != 1 or not self._known(name):
            return 421, "This page answers at its own address only; open the address that nearkin serve printed."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers["host"].lower():
            return 403, "Another site may not ask this page; open it directly."
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
        if site not in ("none", "same-origin") and (scope["method"] not in SAFE or mode != "navigate"):
            return 403, "Another site may not ask this page; open it directly."
        if self.token and not self._admitted(scope, headers):
            return 401, "This page asks for a token; open the whole address that nearkin serve printed."
        return None

    def _known(self, name: str) -> bool:
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # A page that points its own name here still sends that name: a number is safe.
        return address.is_loopback if self.local else True

    def _admitted(self, scope: Scope, headers: dict[str, str]) -> bool:
        if self._asked_with_token(scope):
            return True
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if self._same(given):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._same(cookie.value)

    def _asked_with_token(self, scope: Scope) -> bool:
        """Whether this opens the page with the token in its address; a cookie then takes its place."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        found = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return len(found) == 1 and self._same(found[0])

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _cookie(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """The cookie, and the same address without the token, which then stands in no history."""
        rest = parse_qsl(scope["query_string"].decode("latin-1"))
        query = urlencode([(name, value) for name, value in rest if name != "token"])
        value = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        return [(b"location", f"/?{query}".rstrip("?").encode()), (b"set-cookie", value.encode())]


async def _answer(send: Any, status: int, sentence: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    body = json.dumps({"error": sentence}).encode() if sentence else b""
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
