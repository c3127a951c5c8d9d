"""What a page gets as answers, where a server would give others.

`page.route` of Playwright turns the browser's caches off and hands it every request of the page: a screen that opens under it
costs half as much again. Here the browser hands out requests of the REST interface alone, and reads the page's files from memory.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from playwright.sync_api import Error, Page

OF_SERVER: Final = [{"urlPattern": "*/api/*", "requestStage": "Request"}]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that waits for its answer; without one it waits until the page goes on."""

    session: Any
    number: str
    url: str

    def fulfill(self, body: object, status: int = 200) -> None:
        given = {
            "requestId": self.number,
            "responseCode": status,
            "responseHeaders": [{"name": "content-type", "value": "application/json"}],
            "body": base64.b64encode(json.dumps(body).encode()).decode(),
        }
        with suppress(Error):  # the page gave it up meanwhile
            self.session.send("Fetch.fulfillRequest", given)


def answering(page: Page, pattern: str, answer: Callable[[Asked], None]) -> None:
    """Until the end of the test, requests whose address has this pattern get what `answer` gives; others go to the server."""
    session = page.context.new_cdp_session(page)

    def paused(event: dict[str, Any]) -> None:
        asked = Asked(session, event["requestId"], event["request"]["url"])
        if re.search(pattern, asked.url):
            answer(asked)
        else:
            with suppress(Error):
                session.send("Fetch.continueRequest", {"requestId": asked.number})

    session.on("Fetch.requestPaused", paused)
    session.send("Fetch.enable", {"patterns": OF_SERVER})
