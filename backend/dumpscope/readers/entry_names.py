"""When two names from outside mean one file: on some systems upper and lower case, or two Unicode forms, are the same."""

from __future__ import annotations

from unicodedata import normalize


def folded(name: str) -> str:
    """Equal for names that differ only by case or by Unicode form (`é` as one character or as `e` and an accent)."""
    if name.isascii():
        return name.lower()
    return normalize("NFC", normalize("NFD", name).casefold())
