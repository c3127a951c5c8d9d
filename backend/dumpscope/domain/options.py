"""What a user may ask of a comparison; stored with it as JSON, so that it can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dumpscope.errors import UsageError
from dumpscope.texts import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """policy: "default", "ptdbg", "msprobe" or the text of a policy file (yaml)
    fuzzy: match calls whatever their call index
    data_mapping, cell_mapping, layer_mapping: text of msprobe's yaml files, or None
    rename: `PATTERN=REPLACEMENT` over the target's labels, the first that fits counts
    matches: text of a file of matches made by hand, or None
    fusion: text of a file of fusion rules, or None
    parallel: text of a plan of how ranks are joined ("" to find one), or None to join them only where their numbers differ
    steps, ranks: restrict to these; empty means all that both sides have
    tensors: read tensor files where both sides have them (False: statistics only)
    """

    policy: str = "default"
    fuzzy: bool = False
    data_mapping: str | None = None
    cell_mapping: str | None = None
    layer_mapping: str | None = None
    rename: tuple[str, ...] = ()
    fusion: str | None = None
    matches: str | None = None
    parallel: str | None = None
    steps: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    tensors: bool = True

    def with_steps(self, steps: Sequence[int]) -> Options:
        """The same for these steps."""
        return replace(self, steps=tuple(steps))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Options:
        """Build from stored or received JSON; raises UsageError that names an unknown key."""
        known = set(cls.__dataclass_fields__)
        for key in data:
            if key not in known:
                raise UsageError(
                    say("domain.unknown_option", key=f"{key!r}"),
                    hint=say("domain.known", names=", ".join(sorted(known))),
                )
        clean = dict(data)
        for key in ("steps", "ranks"):
            if key in clean:
                clean[key] = tuple(int(number) for number in clean[key] or ())
        clean["rename"] = tuple(map(str, clean.get("rename") or ()))
        return cls(**clean)
