"""What a server can be told: command line, then environment (`DUMPSCOPE_*`), then defaults. docs/operating.md lists them."""

from __future__ import annotations

import ipaddress
import os
from functools import cached_property
from pathlib import Path

import platformdirs
from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from dumpscope.readers.source_files import SourceRoot, parse_root
from dumpscope.texts import say

MIB = 1 << 20


class Settings(BaseSettings):
    """One object, made once at start and handed down; values given to the constructor win over the environment."""

    model_config = SettingsConfigDict(env_prefix="DUMPSCOPE_", frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    data_dir: Path = Path(platformdirs.user_data_dir("dumpscope", appauthor=False))
    database_url: str = ""
    """Empty: SQLite in the data folder."""
    roots: list[Path] = Field(default_factory=lambda: [Path.cwd()])
    """Folders below which dumps may be registered by path."""
    source_roots: list[str] = Field(default_factory=list)
    """Folders below which a call's source is read where the dump holds none: `DIR`, or `PREFIX=DIR` for the files whose names in
    the dumps begin with PREFIX."""
    executor: str = ""
    """Empty: a process per core, at most eight."""
    token: str = ""
    """Empty: no login, which is refused for a host others can reach."""
    allowed_hosts: list[str] = Field(default_factory=list)
    """Further names under which browsers reach the server (a reverse proxy's)."""
    python: str = ""
    """A Python with torch, by which the server runs pre-checks; empty: it runs none."""
    job_slots: int = Field(default=4, ge=1, le=64)
    upload_mib: int = Field(default=65536, ge=1)
    """Limit of one upload, and of what an uploaded archive may unpack to."""
    upload_files: int = Field(default=200_000, ge=1)
    upload_hours: float = Field(default=24, gt=0)
    """How long an upload that broke off can be gone on with."""

    watch_settle: float = Field(default=10, gt=0, le=3600)
    """Seconds for which a file of a watched folder must not change before it is taken for whole."""

    webhook_hosts: list[str] = Field(default_factory=list)
    """Hosts to which webhooks may be sent: `NAME`, `*.NAME` or an address, each with `:PORT` for one port only."""

    @field_validator("data_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("roots")
    @classmethod
    def _resolve(cls, value: list[Path]) -> list[Path]:
        return [root.expanduser().resolve() for root in value]

    @field_validator("source_roots")
    @classmethod
    def _folders(cls, value: list[str]) -> list[str]:
        for one in value:
            try:
                folder = parse_root(one).folder
            except ValueError:
                raise ValueError(say("cli.source_root_without_prefix", root=one)) from None
            if not os.path.isdir(folder):
                raise ValueError(say("cli.source_root_no_folder", folder=folder))
        return value

    @model_validator(mode="after")
    def _guarded(self) -> Settings:
        if not self.loopback and not self.token:
            raise ValueError(say("cli.host_needs_token", host=self.host))
        return self

    @property
    def loopback(self) -> bool:
        """Only this machine can reach the server."""
        return is_loopback(self.host)

    @cached_property
    def source_folders(self) -> tuple[SourceRoot, ...]:
        """The source roots."""
        return tuple(parse_root(one) for one in self.source_roots)

    @property
    def database(self) -> str:
        """URL of the database."""
        return self.database_url or f"sqlite:///{self.data_dir / 'dumpscope.db'}"

    @property
    def workers(self) -> str:
        """Executor specification."""
        return self.executor or f"processes:{min(os.cpu_count() or 1, 8)}"

    @property
    def uploads(self) -> Path:
        """Where uploaded files lie, one folder per dump."""
        return self.data_dir / "uploads"

    @property
    def receiving(self) -> Path:
        """Where uploads lie that are not complete yet, one folder each."""
        return self.data_dir / "receiving"

    @property
    def unpacked(self) -> Path:
        """Where archives are unpacked, one folder per dump."""
        return self.data_dir / "unpacked"

    @property
    def prechecks(self) -> Path:
        """Where pre-checks that the server runs are written, one folder per dump."""
        return self.data_dir / "prechecks"

    @property
    def upload_bytes(self) -> int:
        return self.upload_mib * MIB


def is_loopback(host: str) -> bool:
    """The name or address means this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
