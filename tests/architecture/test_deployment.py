"""What deploys the server holds together: compose file, Dockerfile, unit of systemd, and our own commands and settings.

`bench/images/images.py` builds and runs the images; here nothing is started.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_schemas import assert_schema

from dumpscope.cli.app import COMMANDS, load_command
from dumpscope.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "images"))

from compose import Service, read_services  # noqa: E402

GIVEN = {"DUMPSCOPE_TOKEN": "secret", "DUMPS": "/somewhere"}
COMPOSE = ROOT / "docker-compose.yml"
UNIT = ROOT / "deploy" / "dumpscope.service"
SETTINGS = {f"DUMPSCOPE_{name.upper()}" for name in Settings.model_fields}


def services() -> dict[str, Service]:
    return {one.name: one for one in read_services(COMPOSE, GIVEN, frozenset({"workers"}))}


def unit(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)


def commands() -> Iterator[list[str]]:
    """Every line of ours that these files run."""
    for service in services().values():
        yield from (line for line in (service.command, service.check) if line[:1] == ["dumpscope"])
    last = re.findall(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    yield [word.strip(' "') for word in last[0].strip("[]").split(",")]
    for key in ("ExecStart", "ExecStartPost"):
        (line,) = unit(key)
        program, *words = shlex.split(line)
        yield [Path(program).name, *words]


def test_the_compose_file_has_the_form_that_compose_reads() -> None:
    assert_schema(COMPOSE, "compose-spec")


@pytest.mark.parametrize("line", list(commands()), ids=" ".join)
def test_every_command_and_option_in_them_exists(line: list[str]) -> None:
    program, name, *words = line
    assert program == "dumpscope"
    assert name in COMMANDS
    known = {option for one in load_command(name).params for option in one.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_every_setting_in_them_exists() -> None:
    for service in services().values():
        assert {name for name in service.environment if name.startswith("DUMPSCOPE_")} <= SETTINGS
    named = set(re.findall(r"DUMPSCOPE_\w+", UNIT.read_text()))
    assert named <= SETTINGS | {"DUMPSCOPE_SERVER"}


def test_the_server_waits_for_its_database_and_its_scheduler_only_where_it_has_one() -> None:
    alone = [one.name for one in read_services(COMPOSE, GIVEN)]
    assert alone == ["database", "dumpscope"]
    names = list(services())
    assert names.index("scheduler") < names.index("dumpscope")
    assert names.index("scheduler") < names.index("worker")
    many = read_services(COMPOSE, {**GIVEN, "DUMPSCOPE_WORKERS": "5"}, frozenset({"workers"}))
    assert [one.replicas for one in many if one.name == "worker"] == [5]


def test_a_token_and_a_folder_must_be_chosen() -> None:
    with pytest.raises(ValueError, match="choose a token"):
        read_services(COMPOSE, {**GIVEN, "DUMPSCOPE_TOKEN": ""})


def test_dumps_are_mounted_read_only_at_the_same_place_everywhere() -> None:
    found = services()
    assert found["worker"].volumes == found["dumpscope"].volumes
    assert ("/somewhere", "/dumps", True) in found["dumpscope"].volumes


def test_nothing_of_ours_runs_as_root_or_has_a_capability() -> None:
    users = re.findall(r"^USER (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert int(users[-1]) > 0, "a number: Kubernetes cannot see whether a name is root"
    assert all(one.drops == ["ALL"] for one in services().values() if one.build)
    assert unit("DynamicUser") == ["yes"]
    assert unit("CapabilityBoundingSet") == [""]


def test_what_the_image_is_made_of_is_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == {"backend", "capture", "frontend", "pyproject.toml", "README.md", "LICENSE"}
    assert all((ROOT / name).exists() for name in kept)
