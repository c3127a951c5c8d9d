"""Lists of names as in support_wrap_ops.yaml, read without PyYAML, which an environment for training may lack.

# a comment
functional: [relu, gelu,
  softmax]
tensor:
  - add
  - npu_*
torch:
"""

from __future__ import annotations

import re
from typing import Final

_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_BARE: Final = r"[A-Za-z_*?][\w.*?]*"
_NAME: Final = rf"(?:{_BARE}|'{_BARE}'|\"{_BARE}\")"
_ENTRY: Final = re.compile(
    rf"""
    \s*(?P<key>[A-Za-z_]\w*):
    (?:
        \s*\[\s*(?P<flow>{_NAME}(?:\s*,\s*{_NAME})*)?\s*,?\s*\]   # on one or more lines, in brackets
      | (?P<block>(?:\s*\n[ ]*-[ ]+{_NAME}[ ]*(?=\n|$))+)         # one a line, behind a dash
      | [ ]*(?=\n|$)                                             # none
    )
    \s*
    """,
    re.VERBOSE,
)


def parse_lists(text: str) -> dict[str, list[str]]:
    """Names by key. Raises ValueError where the text is anything else, such as other YAML."""
    plain = _COMMENT.sub("", text)
    found: dict[str, list[str]] = {}
    place = 0
    while plain[place:].strip():
        entry = _ENTRY.match(plain, place)
        if entry is None or entry["key"] in found:
            raise ValueError(f"no list of names in line {plain.count(chr(10), 0, place) + 1}")
        if entry["block"]:
            names = [line.strip()[1:] for line in entry["block"].split("\n") if line.strip()]
        else:
            names = (entry["flow"] or "").split(",")
        found[entry["key"]] = [name.strip(" \t\n'\"") for name in names if name.strip()]
        place = entry.end()
    return found
