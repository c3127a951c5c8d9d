"""A readable form of the OpenAPI document, without scripts and without files from other servers."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)

STYLE = """body{font:15px/1.5 system-ui;max-width:64rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
code,pre{font:13px ui-monospace,monospace}pre{overflow:auto;padding:.5rem;border:1px solid #8884;border-radius:4px}
h3{margin:1.5rem 0 .2rem}h3 b{display:inline-block;min-width:4.5rem}table{border-collapse:collapse}
td,th{text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top}section{border-top:1px solid #8884}"""


@router.get("/docs")
def docs(request: Request) -> Response:
    """Every call with its parameters, bodies and answers."""
    return HTMLResponse(render(request.app.openapi()), headers={"Cache-Control": "no-cache"})


def render(document: dict[str, Any]) -> str:
    """HTML of an OpenAPI document."""
    info = document["info"]
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])} REST</title>',
        f"<style>{STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f'<p>{escape(info.get("description", ""))} Machine-readable: <a href="openapi.json">openapi.json</a>.</p>',
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation(method, path, operation))
    parts.append("<section><h2>Bodies</h2>")
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        parts.append(_schema(name, schema))
    return "\n".join([*parts, "</section></html>"])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td><td>{_type(one.get('schema', {}))}</td>"
        f"<td>{escape(one.get('description') or '')}</td></tr>"
        for one in operation.get("parameters", [])
    )
    body = operation.get("requestBody", {}).get("content", {})
    bodies = "".join(f"<p>Body ({escape(kind)}): {_type(one.get('schema', {}))}</p>" for kind, one in body.items())
    answers = "".join(f"<li>{escape(code)}: {_answer(reply)}</li>" for code, reply in operation["responses"].items())
    return (
        f"<section><h3><b>{method.upper()}</b> <code>{escape(path)}</code></h3><p>{escape(operation.get('description', ''))}</p>"
        f"{f'<table>{rows}</table>' if rows else ''}{bodies}<ul>{answers}</ul></section>"
    )


def _answer(reply: dict[str, Any]) -> str:
    kinds = (_type(one.get("schema", {})) or escape(kind) for kind, one in reply.get("content", {}).items())
    return f"{', '.join(kinds)} {escape(reply.get('description', ''))}"


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(key)}</code></td><td>{_type(one)}</td><td>{escape(one.get('description', ''))}</td></tr>"
        for key, one in schema.get("properties", {}).items()
    )
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p><table>{rows}</table>'


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(_type(one) for one in schema[several])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'anything'}"
    return escape(str(schema.get("type", "")))
