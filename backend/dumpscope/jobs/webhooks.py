"""What a webhook may reach, how its body is signed, and one delivery over HTTP.

Whoever registers a webhook makes the server send requests. So it sends only to hosts that its operator named, to the very address
that was checked, follows no redirect, reads no more than the status of the reply, and waits for a limited time.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from dumpscope.errors import DumpscopeError, ForbiddenError, UsageError
from dumpscope.texts import say

SECONDS: Final = 10.0
"""How long one delivery may take, from the connection to the status of the reply."""
URL_LENGTH: Final = 2000
SIGNATURE: Final = "Dumpscope-Signature"
TOLERANCE: Final = 300.0
"""Seconds that a signature is good for: an older one may be a repetition by somebody who has seen it."""

_PLAIN: Final = re.compile(r"[!-~]+")
_SIGNED: Final = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")
_PORTS: Final = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class DeliveryError(DumpscopeError):
    """A delivery did not arrive. reply_status: of HTTP, None without a reply; final: another try would end the same way"""

    code = "delivery"

    def __init__(self, detail: str, reply_status: int | None = None, *, final: bool = False) -> None:
        super().__init__(detail)
        self.reply_status = reply_status
        self.final = final


class SignatureError(DumpscopeError):
    """A body was not signed with this secret, or too long ago."""

    status = 403
    code = "signature"


def sign(body: bytes, secret: str, at: float) -> str:
    """The value of the header: the time in seconds since the epoch, and HMAC-SHA256 of `TIME.BODY` in hexadecimal."""
    moment = int(at)
    return f"t={moment},v1={_digest(body, secret, moment)}"


def check_signature(body: bytes, header: str, secret: str, now: float, tolerance: float = TOLERANCE) -> None:
    """Raises SignatureError unless `header` is a signature of `body` by `secret`, at most `tolerance` seconds away from `now`."""
    found = _SIGNED.fullmatch(header.strip())
    if found is None:
        raise SignatureError(say("jobs.no_signature"))
    if not hmac.compare_digest(_digest(body, secret, int(found[1])), found[2]):
        raise SignatureError(say("jobs.signature_wrong"))
    if abs(now - int(found[1])) > tolerance:
        raise SignatureError(say("jobs.signature_old", seconds=int(tolerance)))


def verify_webhook(
    body: bytes, header: str | None, secret: str, *, tolerance: float = TOLERANCE, now: float | None = None
) -> dict[str, Any]:
    """The document of a request to a webhook, once its signature was checked; for whoever receives one.

    body: as it was received, not parsed and written again; header: the value of `Dumpscope-Signature`
    secret: of the webhook; tolerance: seconds that the signature may be old, against repetition by somebody who has seen it
    Raises SignatureError. A delivery may come twice: its `id` is the same then.
    """
    check_signature(body, header or "", secret, time.time() if now is None else now, tolerance)
    document: dict[str, Any] = json.loads(body)
    return document


def _digest(body: bytes, secret: str, moment: int) -> str:
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Allowed:
    """Hosts that webhooks may reach: names and addresses, `*.NAME` for all below a name, each with `:PORT` for one port only."""

    hosts: Sequence[str]

    def check(self, url: str) -> SplitResult:
        """The parts of an address that may be used. Raises UsageError for a wrong form, ForbiddenError for another host."""
        parts, host, port = _split(url)
        if not any(_matches(one.lower(), host, port) for one in self.hosts):
            hint = say("jobs.name_webhook_host", host=host) if self.hosts else say("jobs.no_webhook_hosts")
            raise ForbiddenError(say("jobs.webhook_host_not_allowed", host=host), hint=hint)
        return parts

    def names(self, host: str, port: int, address: Address) -> bool:
        """Whether an address of this machine or link is meant: the list has it, or the name `localhost`."""
        wanted = [host] if host == "localhost" else []
        return any(_matches(one.lower(), name, port) for one in self.hosts for name in (*wanted, str(address)))

    def resolve(self, url: str) -> tuple[SplitResult, int, str]:
        """Parts, port and a checked address of the host. Raises DeliveryError where it has none that may be used."""
        try:
            parts = self.check(url)
        except DumpscopeError as error:
            raise DeliveryError(str(error), final=isinstance(error, UsageError)) from error
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise DeliveryError(say("jobs.webhook_host_unknown", host=host, error=error)) from error
        addresses = [str(one[4][0]) for one in found]
        for one in addresses:
            if not _is_reachable(_plain(one)) and not self.names(host, port, _plain(one)):
                raise DeliveryError(say("jobs.webhook_address_refused", host=host, address=one))
        return parts, port, addresses[0]


def _split(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower().rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise UsageError(say("jobs.bad_webhook_url"), hint=say("jobs.webhook_url_form")) from None
    wrong = not _PLAIN.fullmatch(url) or len(url) > URL_LENGTH or "\\" in url
    if wrong or parts.scheme not in _PORTS or not host or parts.username is not None or parts.fragment:
        raise UsageError(say("jobs.bad_webhook_url"), hint=say("jobs.webhook_url_form"))
    return parts, host, port


def _matches(allowed: str, host: str, port: int) -> bool:
    """Whether an entry of the list means this host and port; addresses of IPv6 stand in brackets if a port follows."""
    name, colon, number = allowed.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.startswith("[")):
        if int(number) != port:
            return False
        allowed = name
    allowed = allowed.strip("[]")
    return host.endswith(allowed[1:]) and host != allowed[2:] if allowed.startswith("*.") else host == allowed


def _plain(address: str) -> Address:
    """An address without its zone; one of IPv4 that is written as IPv6 is what it means."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _is_reachable(address: Address) -> bool:
    """Whether it may be another machine: not this one, not the link (where clouds answer with credentials), not a group."""
    own = address.is_loopback or address.is_unspecified
    return not (own or address.is_link_local or address.is_multicast or address.is_reserved)


def post(allowed: Allowed, url: str, body: bytes, headers: Mapping[str, str], seconds: float = SECONDS) -> int:
    """Send one body; the status of the reply, which is 2xx. Raises DeliveryError."""
    parts, port, address = allowed.resolve(url)
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    late = threading.Event()

    def end() -> None:
        late.set()
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    clock = threading.Timer(seconds, end)  # a time-out of the socket begins again with every byte
    clock.daemon = True
    clock.start()
    try:
        connection.sock = socket.create_connection((address, port), seconds)
        if parts.scheme == "https":
            secure = ssl.create_default_context().wrap_socket(
                connection.sock, server_hostname=host, do_handshake_on_connect=False
            )
            connection.sock = secure
            secure.do_handshake()
        where = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", where, body, {"Host": parts.netloc, **headers, "Connection": "close"})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        if late.is_set() or isinstance(error, TimeoutError):
            raise DeliveryError(say("jobs.webhook_slow", seconds=f"{seconds:g}")) from error
        raise DeliveryError(say("jobs.webhook_no_answer", error=error or type(error).__name__)) from error
    finally:
        clock.cancel()
        if connection.sock is not None:
            connection.sock.close()
        connection.close()
    if not 200 <= status < 300:
        why = "jobs.webhook_redirects" if 300 <= status < 400 else "jobs.webhook_status"
        raise DeliveryError(say(why, status=status), status)
    return status
