"""The REST interface only grows: what a script of an earlier version sends is still taken, and what it reads is still there."""

from __future__ import annotations

import copy
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dumpscope.api.openapi import document

PROMISED = Path(__file__).parents[1] / "data" / "openapi_promised.json.xz"
"""The document that scripts rely on. To promise what is new: `python tests/api/test_compatibility.py`, which refuses a break."""

Document = dict[str, Any]


def breaks(before: Document, now: Document) -> list[str]:
    """What a client of `before` would stumble over, one sentence each."""
    return list(_operations(before, now))


def _operations(before: Document, now: Document) -> Iterator[str]:
    for path, operations in before["paths"].items():
        for method, old in operations.items():
            new = now["paths"].get(path, {}).get(method)
            where = f"{method.upper()} {path}"
            if new is None:
                yield f"{where} is gone"
                continue
            yield from _parameters(where, old, new)
            yield from _bodies(where, _Schemas(before, now), old, new)
            yield from _replies(where, _Schemas(before, now), old, new)


def _parameters(where: str, old: Document, new: Document) -> Iterator[str]:
    known = {(one["in"], one["name"]): one for one in old.get("parameters", ())}
    present = {(one["in"], one["name"]): one for one in new.get("parameters", ())}
    for place, one in known.items():
        if place not in present:
            yield f"{where}: the parameter {place[1]} is gone"
        else:
            lost = set(_words(one["schema"])) - set(_words(present[place]["schema"]))
            if lost and _words(present[place]["schema"]):
                yield f"{where}: {place[1]} no longer takes {', '.join(sorted(lost))}"
    for place, one in present.items():
        if one.get("required") and not known.get(place, {}).get("required"):
            yield f"{where}: the parameter {place[1]} must now be given"


class _Schemas:
    """The schemas of both documents; references are followed once, so that a schema that holds itself ends."""

    def __init__(self, before: Document, now: Document) -> None:
        self.before, self.now = before, now
        self._seen: set[tuple[str, str]] = set()

    def compare(self, where: str, old: Document, new: Document, *, sent: bool) -> Iterator[str]:
        """sent: the client sends it, else it reads it"""
        if "$ref" in old:
            key = (old["$ref"], json.dumps(new, sort_keys=True))
            if key in self._seen:
                return
            self._seen.add(key)
        old, new = _resolved(self.before, old), _resolved(self.now, new)
        properties, present = old.get("properties", {}), new.get("properties", {})
        for name, one in properties.items():
            if name not in present:
                if properties and present:
                    yield f"{where}: {name} is gone"
            else:
                yield from self.compare(f"{where}: {name}", one, present[name], sent=sent)
        if sent:
            for name in set(new.get("required", ())) - set(old.get("required", ())):
                yield f"{where}: {name} must now be given"
        if "items" in old and "items" in new:
            yield from self.compare(where, old["items"], new["items"], sent=sent)
        kinds, others = _kinds(self.before, old), _kinds(self.now, new)
        lost = kinds - others if sent else others - kinds
        if kinds and others and lost - {"null"} and not (not sent and "null" in kinds | others and lost == {"null"}):
            word = "no longer takes" if sent else "may now be"
            yield f"{where}: {word} {', '.join(sorted(lost))}"
        choices, left = set(_words(old)), set(_words(new))
        if sent and choices and left and choices - left:
            yield f"{where}: no longer takes {', '.join(sorted(choices - left))}"


def _bodies(where: str, schemas: _Schemas, old: Document, new: Document) -> Iterator[str]:
    taken = new.get("requestBody", {}).get("content", {})
    for media, one in old.get("requestBody", {}).get("content", {}).items():
        if media not in taken:
            yield f"{where}: a body of {media} is no longer taken"
        elif "schema" in one:
            yield from schemas.compare(f"{where} body", one["schema"], taken[media]["schema"], sent=True)
    if new.get("requestBody", {}).get("required") and "requestBody" not in old:
        yield f"{where}: a body must now be sent"


def _replies(where: str, schemas: _Schemas, old: Document, new: Document) -> Iterator[str]:
    for status, one in old["responses"].items():
        present = new["responses"].get(status)
        if present is None:
            yield f"{where}: no reply {status}"
            continue
        for media, content in one.get("content", {}).items():
            if media not in present.get("content", {}):
                yield f"{where}: the reply {status} is no longer {media}"
            elif "schema" in content:
                schema = present["content"][media].get("schema", {})
                yield from schemas.compare(f"{where} {status}", content["schema"], schema, sent=False)


def _resolved(document: Document, schema: Document) -> Document:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema


def _kinds(document: Document, schema: Document) -> set[str]:
    """JSON types that a schema allows; empty where it allows all."""
    schema = _resolved(document, schema)
    if "anyOf" in schema or "oneOf" in schema:
        parts = [_kinds(document, one) for one in schema.get("anyOf", schema.get("oneOf"))]
        return set().union(*parts) if all(parts) else set()
    return {schema["type"]} if "type" in schema else set()


def _words(schema: Document) -> list[str]:
    """The words of an enumeration, [] for another schema."""
    if "anyOf" in schema:
        return [word for one in schema["anyOf"] for word in _words(one)]
    if "items" in schema:
        return _words(schema["items"])
    return [str(one) for one in schema.get("enum", [schema["const"]] if "const" in schema else [])]


@pytest.fixture(scope="module")
def present() -> Document:
    found: Document = json.loads(document())
    return found


def test_nothing_that_was_promised_is_broken(present: Document) -> None:
    promised = json.loads(lzma.decompress(PROMISED.read_bytes()))
    assert breaks(promised, present) == []
    assert len(promised["paths"]) > 70


def test_the_document_has_the_version_of_the_package(present: Document) -> None:
    from dumpscope import __version__  # noqa: PLC0415

    assert present["info"]["version"] == __version__


def _without(path: str, method: str, name: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        kept = [one for one in document["paths"][path][method]["parameters"] if one["name"] != name]
        document["paths"][path][method]["parameters"] = kept

    return change


NODES = "/api/comparisons/{comparison_id}/nodes"
BROKEN: dict[str, tuple[Callable[[Document], Any], str]] = {
    "a path": (lambda d: d["paths"].pop("/api/health"), "GET /api/health is gone"),
    "a method": (lambda d: d["paths"]["/api/dumps"].pop("post"), "POST /api/dumps is gone"),
    "a parameter": (_without(NODES, "get", "api"), f"GET {NODES}: the parameter api is gone"),
    "a parameter that must be given": (
        lambda d: d["paths"][NODES]["get"]["parameters"].append({"in": "query", "name": "x", "required": True}),
        f"GET {NODES}: the parameter x must now be given",
    ),
    "a field of a reply": (
        lambda d: d["components"]["schemas"]["Job"]["properties"].pop("progress"),
        "progress is gone",
    ),
    "a type of a reply": (
        lambda d: d["components"]["schemas"]["Job"]["properties"]["progress"].update(type="string"),
        "progress: may now be string",
    ),
    "a field of a body": (
        lambda d: d["components"]["schemas"]["ComparisonOptions"]["properties"].pop("fuzzy"),
        "fuzzy is gone",
    ),
    "a field that must be sent": (
        lambda d: d["components"]["schemas"]["NewComparison"]["required"].append("name"),
        "name must now be given",
    ),
    "an error body": (
        lambda d: d["components"]["schemas"]["Error"]["properties"].pop("hint"),
        "hint is gone",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_break_is_noticed(present: Document, kind: str) -> None:
    change, words = BROKEN[kind]
    changed = copy.deepcopy(present)
    change(changed)
    found = breaks(present, changed)
    assert any(words in one for one in found), found


def test_growth_is_no_break(present: Document) -> None:
    grown = copy.deepcopy(present)
    grown["paths"]["/api/new"] = {"get": {"responses": {"200": {}}}}
    grown["components"]["schemas"]["Job"]["properties"]["invented"] = {"type": "string"}
    grown["paths"][NODES]["get"]["parameters"].append({"in": "query", "name": "x", "schema": {"type": "string"}})
    grown["components"]["schemas"]["ComparisonOptions"]["properties"]["invented"] = {"type": "boolean"}
    assert breaks(present, grown) == []


if __name__ == "__main__":
    fresh = json.loads(document())
    if PROMISED.exists() and (lost := breaks(json.loads(lzma.decompress(PROMISED.read_bytes())), fresh)):
        raise SystemExit("\n".join(lost))
    PROMISED.write_bytes(lzma.compress(json.dumps(fresh, separators=(",", ":"), sort_keys=True).encode(), preset=9))
