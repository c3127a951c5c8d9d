"""The file: scripts and styles of the page, plotly.js and the contents, all packed inside."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from dumpscope.api.pages import STATIC, plotly_file
from dumpscope.errors import DumpscopeError
from dumpscope.texts import say

BUNDLE: Final = STATIC / "file"
"""Where the build puts the page that reads its replies from its own file."""

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'">
<title>{title}</title>
</head>
<body>
<div id="root"></div>
<noscript>This file shows a comparison of dumpscope. It needs scripts, which are all inside; nothing is loaded.</noscript>
<script type="text/plain" id="contents">{contents}</script>
<script type="text/plain" id="plotly">{plotly}</script>
<script type="text/plain" id="style">{style}</script>
<script type="text/plain" id="page">{page}</script>
<script>{start}</script>
</body>
</html>
"""

# A file from a disk may load no other script, and a script in a page may not hold "</script>": so they are packed as text.
_START: Final = """
globalThis.unpack = async (id) => {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
globalThis.run = async (id) => {
  const script = document.createElement("script");
  script.textContent = await unpack(id);
  document.head.append(script);
};
(async () => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: await unpack("style") }));
  await run("page");
})().catch(() => {
  document.getElementById("root").textContent = "This file is damaged, or this browser is older than 2023.";
});
"""


def page_html(title: str, contents: bytes) -> bytes:
    """The whole file. contents: JSON of `contents.collect`; title: of the window

    Raises DumpscopeError where this installation has no built page.
    """
    style, page = _bundle()
    text = _PAGE.format(
        title=escape(title), style=style, contents=_packed(contents), plotly=_plotly(), page=page, start=_START
    )
    return text.encode("utf-8", "replace")


def require_page() -> None:
    """Raise DumpscopeError where this installation has no built page."""
    if not (BUNDLE / "page.js").is_file():
        raise DumpscopeError(say("api.no_file_page"), where=str(BUNDLE), hint=say("api.build_page"))


@cache
def _bundle() -> tuple[str, str]:
    """Style sheet and script, both packed."""
    require_page()
    style = "".join(file.read_text(encoding="utf-8") for file in sorted(BUNDLE.glob("*.css")))
    return _packed(style.encode()), _packed((BUNDLE / "page.js").read_bytes())


@cache
def _plotly() -> str:
    """plotly.js, packed; empty where it is not installed."""
    file: Path | None = plotly_file()
    return "" if file is None else _packed(file.read_bytes())


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
