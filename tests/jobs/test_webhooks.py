"""Which hosts a webhook may reach, and how its body is signed."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dumpscope.client import SignatureError, verify_webhook
from dumpscope.errors import ForbiddenError, UsageError
from dumpscope.jobs.webhooks import Allowed, DeliveryError, check_signature, sign

NAMED = Allowed(["ci.example.com", "*.team.example.com", "hooks.example.com:8443", "10.1.2.3", "[fd00::5]:9000"])


@pytest.mark.parametrize(
    "url",
    [
        "http://ci.example.com/x", "https://CI.example.com:9000/", "http://ci.example.com./x", "https://a.team.example.com",
        "https://a.b.team.example.com/h?x=1", "https://hooks.example.com:8443/h", "http://10.1.2.3:80/", "http://[fd00::5]:9000/",
    ],
)  # fmt: skip
def test_a_named_host_may_be_reached(url: str) -> None:
    assert NAMED.check(url).geturl() == url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "http://ci.example.com.evil.org/", "http://evilci.example.com/", "https://team.example.com/",
        "https://evilteam.example.com/", "https://hooks.example.com/", "http://10.1.2.30/", "http://[fd00::5]/", "http://127.0.0.1/",
        "http://ci.example.com@evil.org/",
    ],
)  # fmt: skip
def test_another_host_may_not(url: str) -> None:
    with pytest.raises((ForbiddenError, UsageError)):
        NAMED.check(url)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://ci.example.com/", "file:///etc/passwd", "ci.example.com", "http:///x", "http://user@ci.example.com/",
        "http://ci.example.com/\r\nX: y", "http://ci.example.com/ x", "http://ci.example.com:99999/", "http://ci.example.com/#x",
        "http://ci.example.com\\@evil.org/", "http://ci.example.com/" + "x" * 2000, "http://ci.exämple.com/", "http://[::1/",
    ],
)  # fmt: skip
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        NAMED.check(url)


def test_nothing_may_be_reached_where_no_host_is_named() -> None:
    with pytest.raises(ForbiddenError, match="none is named"):
        Allowed([]).check("http://ci.example.com/")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
    ],
)
def test_a_named_host_may_not_lead_to_this_machine_or_its_link(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    def answer(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in ("93.184.216.34", address)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with pytest.raises(DeliveryError, match="this machine or link"):
        NAMED.resolve("http://ci.example.com/")
    plain = address.partition("%")[0].removeprefix("::ffff:")
    named = Allowed(["ci.example.com", f"[{plain}]" if ":" in plain else plain])
    assert named.resolve("http://ci.example.com/")[2] == "93.184.216.34", "unless the operator names that address too"


def test_localhost_can_be_named() -> None:
    assert Allowed(["localhost:9000"]).resolve("http://localhost:9000/x")[1] == 9000
    with pytest.raises(DeliveryError):
        Allowed(["localhost:9000"]).resolve("http://localhost:9001/x")


@given(st.binary(max_size=200), st.text(max_size=40), st.integers(0, 2**34))
def test_a_signature_is_good_for_its_body_secret_and_time_only(body: bytes, secret: str, at: int) -> None:
    header = sign(body, secret, at)
    check_signature(body, header, secret, at + 299)
    for wrong in ((body + b"x", header, secret), (body, header, f"{secret}x"), (body, header[:-1] + "!", secret)):
        with pytest.raises(SignatureError):
            check_signature(*wrong, at)
    for late in (at + 302, at - 302):
        with pytest.raises(SignatureError, match="away from now"):
            check_signature(body, header, secret, late)


@given(st.text(max_size=120))
def test_any_other_text_is_no_signature(header: str) -> None:
    with pytest.raises(SignatureError):
        verify_webhook(b"{}", header, "secret")


def test_a_signature_is_what_the_guide_says() -> None:
    body = json.dumps({"event": "compare.done"}).encode()
    digest = hmac.new(b"whsec_x", b"1700000000." + body, hashlib.sha256).hexdigest()
    assert sign(body, "whsec_x", 1_700_000_000.9) == f"t=1700000000,v1={digest}"
    assert verify_webhook(body, f"t=1700000000,v1={digest}", "whsec_x", now=1_700_000_100) == {"event": "compare.done"}
