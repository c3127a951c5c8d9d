"""What docker-compose.yml asks for, read from the file itself: commands, environment, folders, health checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

_VARIABLE: Final = re.compile(r"\$(?:\$|\{(\w+)(?:(:?[-?])([^}]*))?\})")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """build: whether the image is made of our Dockerfile; check: command of its health, [] without one; volumes: (source, folder
    in the container, read-only); tmpfs: folders; needs: services that must be healthy before; grace: seconds to end"""

    name: str
    build: bool
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    volumes: list[tuple[str, str, bool]] = field(default_factory=list)
    tmpfs: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)
    timeout: float = 30.0
    patience: float = 60.0
    needs: list[str] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    replicas: int = 1
    grace: float = 10.0


def read_services(file: Path, variables: Mapping[str, str], profiles: frozenset[str] = frozenset()) -> list[Service]:
    """The services of these profiles, each after those that it needs. Raises ValueError where a variable must be given."""
    document = _filled(yaml.safe_load(file.read_text()), variables)
    chosen = {
        name: one
        for name, one in document["services"].items()
        if not one.get("profiles") or profiles & set(one["profiles"])
    }
    found = [_service(name, one, set(chosen)) for name, one in chosen.items()]
    ordered: list[Service] = []
    while found:
        ready = [one for one in found if set(one.needs) <= {before.name for before in ordered}]
        if not ready:
            raise ValueError(f"services wait for each other: {', '.join(one.name for one in found)}")
        ordered += ready
        found = [one for one in found if one not in ready]
    return ordered


def _service(name: str, given: Mapping[str, Any], chosen: set[str]) -> Service:
    health = given.get("healthcheck") or {}
    test = list(health.get("test") or [])
    interval = seconds(health.get("start_interval") or health.get("interval") or "30s")
    retries = int(health.get("retries", 3))
    return Service(
        name=name,
        build="build" in given,
        command=list(given.get("command") or []),
        environment={key: str(value) for key, value in (given.get("environment") or {}).items()},
        volumes=[_volume(one) for one in given.get("volumes") or []],
        tmpfs=[one.split(":")[0] for one in given.get("tmpfs") or []],
        check=["sh", "-c", test[1]] if test[:1] == ["CMD-SHELL"] else test[1:],
        timeout=seconds(health.get("timeout") or "30s"),
        patience=seconds(health.get("start_period") or "0s") + retries * interval,
        needs=[
            other
            for other, how in (given.get("depends_on") or {}).items()
            if other in chosen or how.get("required", True)
        ],
        drops=list(given.get("cap_drop") or []),
        replicas=int((given.get("deploy") or {}).get("replicas", 1)),
        grace=seconds(given.get("stop_grace_period") or "10s"),
    )


def _volume(text: str) -> tuple[str, str, bool]:
    source, folder, *rest = text.split(":")
    return source, folder, "ro" in rest


def seconds(text: str) -> float:
    """A time like `1m30s`."""
    return sum(float(count) * _SECONDS[unit] for count, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    """Variables replaced as compose replaces them."""
    if isinstance(value, dict):
        return {key: _filled(one, variables) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, variables) for one in value]
    return _VARIABLE.sub(lambda found: _variable(found, variables), value) if isinstance(value, str) else value


def _variable(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name, how, word = found[1], found[2], found[3]
    if name is None:
        return "$"
    value = variables.get(name)
    if value is None or (value == "" and how and how.startswith(":")):
        if how and how.endswith("?"):
            raise ValueError(f"{name}: {word}")
        return word or ""
    return value
