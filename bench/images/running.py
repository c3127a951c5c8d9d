"""Starts, checks and ends services: those of our image by `buildah run` in chroots, the database as this machine's PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

import psutil
from compose import Service

SYSTEM = ("/proc", "/sys", "/dev", "/run", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/etc/mtab")
"""What buildah itself puts into a container."""
_SIGNALLED = re.compile(r"^subprocess exited on (\w+)", re.MULTILINE)


@dataclass
class Container:
    """One replica of a service. name: of buildah's working container"""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    file: IO[bytes] = field(repr=False)


class Stack:
    """Services that run together, in the network namespace of this process. image: of those that our Dockerfile builds"""

    def __init__(self, services: list[Service], image: str) -> None:
        self._services, self._image = services, image
        self._room = Path(tempfile.mkdtemp(prefix="dumpscope-stack-"))
        self._room.chmod(0o755)
        self._containers: dict[str, list[Container]] = {}
        self._made: list[str] = []
        self._database: Path | None = None
        self._marker = self._room / "begun"

    def __enter__(self) -> Stack:
        self._marker.touch()
        time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for name in self._containers:
                print(f"--- output of {name}\n{self.output(name)[-3000:]}")
        for process in self.processes():
            process.kill()
        self._stop_database(signal.SIGQUIT)
        for name in self._made:
            subprocess.run(["buildah", "umount", name], capture_output=True, check=False)
            subprocess.run(["buildah", "rm", name], capture_output=True, check=False)
        shutil.rmtree(self._room, ignore_errors=True)

    def start(self) -> dict[str, float]:
        """Start all services, each when those that it needs are healthy, and wait for all; seconds until each was healthy."""
        known = {one.name: one for one in self._services}
        took: dict[str, float] = {}
        begun: dict[str, float] = {}
        for service in self._services:
            for name in service.needs:
                self._await(known[name], begun, took)
            begun[service.name] = time.monotonic()
            if service.build:
                self._containers[service.name] = [self._run(service, number) for number in range(service.replicas)]
            else:
                self._start_database(service)
        for service in self._services:
            self._await(service, begun, took)
        return took

    def _await(self, service: Service, begun: dict[str, float], took: dict[str, float]) -> None:
        if service.name in took:
            return
        while not self.is_healthy(service):
            if time.monotonic() - begun[service.name] > service.patience or self._has_ended(service):
                raise RuntimeError(f"{service.name} is not healthy")
            time.sleep(0.5)
        took[service.name] = time.monotonic() - begun[service.name]

    def is_healthy(self, service: Service) -> bool:
        if not service.check:
            return True
        command = service.check
        if service.build:
            one = self._containers[service.name][0]
            command = [*self._buildah(service), one.name, "--", *service.check]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "PATH": f"{_postgres()}:{os.environ['PATH']}", "PGHOST": "127.0.0.1"},
                capture_output=True,
                timeout=service.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def output(self, name: str) -> str:
        if name not in self._containers:
            return (self._room / "postgres.log").read_text() if self._database else ""
        return "".join(one.output.read_text(errors="replace") for one in self._containers[name])

    def stop(self, service: Service) -> tuple[str, float]:
        """End a service as docker does, by SIGTERM to its program; how it ended, and after how many seconds."""
        begun = time.monotonic()
        if not service.build:
            self._stop_database(signal.SIGTERM)
            return "0", time.monotonic() - begun
        statuses = []
        for one in self._containers[service.name]:
            program = _program(one.process.pid)
            if program is not None:
                program.terminate()
            try:
                status = one.process.wait(service.grace)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"{service.name} did not end in {service.grace} s") from None
            one.file.close()
            signalled = _SIGNALLED.search(one.output.read_text(errors="replace"))  # buildah's own status is 1 then
            statuses.append(signalled[1] if signalled else str(status))
        return ", ".join(statuses), time.monotonic() - begun

    def processes(self) -> list[psutil.Process]:
        """Processes of this network namespace besides this one and its callers."""
        own = os.readlink("/proc/self/ns/net")
        callers = {os.getpid(), *(one.pid for one in psutil.Process().parents())}
        found = []
        for one in psutil.process_iter():
            try:
                if one.pid not in callers and os.readlink(f"/proc/{one.pid}/ns/net") == own:
                    found.append(one)
            except OSError:
                continue
        return [one for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    def written(self) -> list[str]:
        """Files that appeared or changed in the system of a container: with a read-only one they could not have been written."""
        found = []
        for containers in self._containers.values():
            for one in containers:
                root = Path(
                    subprocess.run(
                        ["buildah", "mount", one.name], capture_output=True, text=True, check=True
                    ).stdout.strip()
                )
                changed = subprocess.run(
                    ["find", str(root), "-xdev", "-type", "f", "-newer", str(self._marker)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                names = [f"/{Path(line).relative_to(root)}" for line in changed.stdout.splitlines()]
                found += [f"{one.name}:{name}" for name in names if not name.startswith(SYSTEM)]
        return found

    # -- containers of our image ---------------------------------------------------------------------------------------

    def _run(self, service: Service, number: int) -> Container:
        hosts = [f"--add-host={one.name}:127.0.0.1" for one in self._services]
        made = subprocess.run(
            ["buildah", "from", "--pull-never", *hosts, self._image], capture_output=True, text=True, check=True
        ).stdout.strip()
        self._made.append(made)
        output = self._room / f"{service.name}-{number}.log"
        file = output.open("wb")
        process = subprocess.Popen(
            [*self._buildah(service, number), made, "--", *service.command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return Container(name=made, process=process, output=output, file=file)

    def _buildah(self, service: Service, number: int = 0) -> list[str]:
        words = ["buildah", "run", "--isolation", "chroot"]
        words += [f"--env={name}={value}" for name, value in service.environment.items()]
        words += [f"--cap-drop={one}" for one in service.drops]
        for source, folder, read_only in service.volumes:
            place = Path(source) if source.startswith("/") else self._volume(source, owner=True)
            words.append(f"--volume={place}:{folder}{':ro' if read_only else ''}")
        for folder in service.tmpfs:
            words.append(f"--volume={self._volume(f'{service.name}-{number}-tmp', owner=False)}:{folder}")
        return words

    def _volume(self, name: str, *, owner: bool) -> Path:
        """A folder of this stack: the program's own, as docker makes a named volume, or open to all."""
        place = self._room / "volumes" / name
        if not place.exists():
            place.mkdir(parents=True)
            if owner:
                user = subprocess.run(
                    ["buildah", "inspect", "--type", "image", "--format", "{{.OCIv1.Config.User}}", self._image],
                    capture_output=True, text=True, check=True,
                ).stdout.strip()  # fmt: skip
                os.chown(place, int(user), int(user))
            else:
                place.chmod(0o1777)
        return place

    def _has_ended(self, service: Service) -> bool:
        return any(one.process.poll() is not None for one in self._containers.get(service.name, ()))

    # -- the database --------------------------------------------------------------------------------------------------

    def _start_database(self, service: Service) -> None:
        """This machine's PostgreSQL with the user, password and database that the service asks of its image."""
        given = service.environment
        home = self._database = self._room / "postgres"
        home.mkdir()
        password = self._room / "password"
        password.write_text(given["POSTGRES_PASSWORD"])
        for one in (home, password):
            shutil.chown(one, "postgres")
        bin = _postgres()
        as_user = ["runuser", "-u", "postgres", "--"]
        user = given["POSTGRES_USER"]
        login = ["-A", "scram-sha-256", f"--pwfile={password}"]
        where = f"-k {home} -c listen_addresses=127.0.0.1"
        for command in (
            [f"{bin}/initdb", "-D", str(home), "-U", user, *login, "-E", "UTF8", "--no-sync"],
            [f"{bin}/pg_ctl", "-D", str(home), "-w", "-l", str(home / "log"), "start", "-o", where],
        ):  # fmt: skip
            subprocess.run([*as_user, *command], cwd="/", check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            [f"{bin}/createdb", "-h", "127.0.0.1", "-U", user, given["POSTGRES_DB"]],
            env={**os.environ, "PGPASSWORD": given["POSTGRES_PASSWORD"]},
            check=True,
        )

    def _stop_database(self, how: signal.Signals) -> None:
        if self._database is None:
            return
        number = int((self._database / "postmaster.pid").read_text().splitlines()[0])
        process = psutil.Process(number)
        process.send_signal(how)
        process.wait(60)
        self._database = None


def _postgres() -> str:
    return str(sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1])


def _program(number: int) -> psutil.Process | None:
    """The program of a container: the first process below buildah's that is not buildah."""
    below = psutil.Process(number).children(recursive=True)
    return next((one for one in below if "buildah" not in one.name()), None)
