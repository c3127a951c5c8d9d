"""What later versions of Python have and 3.8, the oldest that capture runs on, lacks."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers know this one by its name
elif sys.version_info >= (3, 10):
    dataclass = dataclasses.dataclass
else:

    def dataclass(*, slots: bool = False, kw_only: bool = False, **options: Any) -> Any:
        """Decorator `dataclasses.dataclass`. slots has no effect; kw_only: fields without a default may follow those with one."""

        def decorate(cls: type) -> type:
            if kw_only:
                own = vars(cls).get("__annotations__", {})
                cls.__annotations__ = {
                    name: own[name] for name in sorted(own, key=lambda name: _has_default(cls, name))
                }
            return dataclasses.dataclass(**options)(cls)

        return decorate


def _has_default(cls: type, name: str) -> bool:
    """Whether a field of a class that is no dataclass yet has a default."""
    default = vars(cls).get(name, dataclasses.MISSING)
    if isinstance(default, dataclasses.Field):
        return default.default is not dataclasses.MISSING or default.default_factory is not dataclasses.MISSING
    return default is not dataclasses.MISSING


def without_prefix(text: str, prefix: str) -> str:
    """The text of `str.removeprefix`, which came with Python 3.9."""
    return text[len(prefix) :] if prefix and text.startswith(prefix) else text


def without_suffix(text: str, suffix: str) -> str:
    """The text of `str.removesuffix`, which came with Python 3.9."""
    return text[: -len(suffix)] if suffix and text.endswith(suffix) else text
