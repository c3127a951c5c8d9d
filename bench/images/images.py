"""The images as they would run with docker: built from the Dockerfile, started as docker-compose.yml says, and used.

    sudo python bench/images/images.py            # base, build, the services alone, then with the workers' profile

Needs root, buildah, debootstrap and PostgreSQL of this machine, and no docker: nothing is pulled. The base `python:3.11-slim` is
made of Debian 12 under that very name, the database's image is replaced by the PostgreSQL that is here. Containers run in
chroots in one network namespace of their own, so no port of this machine is used. What a chroot does not do is not tested:
limits of memory, a read-only system (files that appeared in it are looked for instead), restarts.

`--copy FILE` and `--env NAME=VALUE` give the base what the machine needs to reach package registries (sources of apt,
certificates, configuration of pip and npm).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from compose import read_services  # noqa: E402
from running import Stack  # noqa: E402

BASE = "python:3.11-slim"
PACKAGES = "python3,python3-pip,ca-certificates"
CAUSE = "Functional.softmax.1.forward"
TOKEN = "a token of this run"
WORKERS = 2


def run(*command: str, **words: object) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **words)  # type: ignore[call-overload]
    return str(done.stdout).strip()


def make_base(mirror: str, copies: list[Path], environment: list[str], room: Path) -> None:
    """Debian's Python 3.11, prepared as the official image is: python and pip on PATH, pip may install anywhere."""
    folder = room / "base"
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(folder), mirror)
    (folder / "usr/bin/python").symlink_to("python3")
    for mark in folder.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        mark.unlink()
    for one in copies:
        place = folder / one.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        run("rm", "-rf", str(place))
        run("cp", "-aL", str(one), str(place))
    made = run("buildah", "from", "--pull-never", "scratch")
    try:
        run("buildah", "add", "--quiet", made, str(folder), "/")
        told = [f"--env={one}" for one in environment]
        run(
            "buildah",
            "config",
            "--env=PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "--env=LANG=C.UTF-8",
            *told,
            made,
        )
        run("buildah", "commit", "--quiet", made, BASE)
    finally:
        run("buildah", "rm", made)
        shutil.rmtree(folder)


def build() -> None:
    """The image, and how long that took."""
    begun = time.monotonic()
    subprocess.run(
        ["buildah", "bud", "--layers", "--isolation", "chroot", "--pull-never", "--tag", "dumpscope", str(ROOT)],
        check=True,
        stdout=sys.stderr,
    )
    print(
        f"built in {time.monotonic() - begun:.0f} s, {run('buildah', 'images', '--format', '{{.Size}}', 'dumpscope')}"
    )


def use(stack: Stack, dumps: Path, *, workers: int) -> None:
    """Register, upload, compare; the answer must be the one that the command gives here."""
    from dumpscope.client import Client  # noqa: PLC0415

    begun = time.monotonic()
    with Client("http://127.0.0.1:8000", token=TOKEN) as client:
        health = client.health()
        assert health["database"] == "postgresql", health
        assert health["executor"].startswith("tcp://scheduler" if workers else "processes:"), health
        target, golden = client.register("/dumps/target_fault"), client.register("/dumps/golden")
        result = client.compare(target, golden)
        nodes = [one.node for one in client.origins(result)]
        assert (result.outcome, nodes[0]) == ("diverged", CAUSE)
        sent = client.upload(dumps / "target_fault")
        again = client.compare(sent, golden)
        assert (again.counts, again.outcome) == (result.counts, "diverged")
        same = client.compare(golden, golden)
        assert same.outcome == "agrees", same
    kind = f"{workers} workers of the cluster" if workers else "processes of the server"
    print(f"right answers from {kind}: {nodes[0]}, {result.counts}, {time.monotonic() - begun:.1f} s")
    if workers:
        assert stack.output("worker").count("Registered to") == workers


def serve(dumps: Path) -> None:
    """The services of the file, then with the profile of workers."""
    for workers in (0, WORKERS):
        variables = {"DUMPSCOPE_TOKEN": TOKEN, "DUMPS": str(dumps), "DUMPSCOPE_WORKERS": str(WORKERS)}
        if workers:
            variables["DUMPSCOPE_EXECUTOR"] = "tcp://scheduler:8786"
        profiles = frozenset({"workers"} if workers else ())
        services = read_services(ROOT / "docker-compose.yml", variables, profiles)
        print(f"services: {', '.join(one.name for one in services)}")
        with Stack(services, "dumpscope") as stack:
            for name, took in stack.start().items():
                print(f"  {name}: healthy after {took:.1f} s")
            use(stack, dumps, workers=workers)
            left = stack.written()
            assert not left, f"written outside the mounted folders: {left}"
            for service in reversed(services):
                status, took = stack.stop(service)
                print(f"  {service.name}: ended with {status} after {took:.1f} s")
                assert set(status.split(", ")) <= {"0", "terminated"}, status
            assert not stack.processes(), stack.processes()
    print("clean ends, no process left, nothing written into the system of the containers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    parser.add_argument("--copy", type=Path, action="append", default=[], help="put this file or folder into the base")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="environment of the base")
    parser.add_argument("--fresh", action="store_true", help="make the base again")
    parser.add_argument("--only", choices=("base", "build", "serve"), help="one stage")
    parser.add_argument("--dumps", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dumps:
        return serve(given.dumps)
    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dumpscope-images-")))
        room.chmod(0o755)
        if given.only in (None, "base") and (given.fresh or not _known(BASE)):
            make_base(given.mirror, given.copy, given.env, room)
        if given.only in (None, "build"):
            build()
        if given.only in (None, "serve"):
            run("tar", "-xf", str(ROOT / "tests/data/dumps.tar.xz"), "-C", str(room))
            inside: Mapping[str, str] = {**os.environ, "PYTHONUNBUFFERED": "1"}
            loopback = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
            command = [*loopback, sys.executable, __file__, "--dumps", str(room)]
            sys.exit(subprocess.run(command, env=inside, check=False).returncode)
    return None


def _known(image: str) -> bool:
    return (
        subprocess.run(["buildah", "inspect", "--type", "image", image], capture_output=True, check=False).returncode
        == 0
    )


if __name__ == "__main__":
    main()
