"""The script of a call over REST."""

from __future__ import annotations

import ast
from pathlib import Path

from api.conftest import Client, register, settled


def test_a_call_of_a_stored_dump_gives_its_script(served: Client, dumps: Path) -> None:
    dump = register(served, dumps / "target_fault")
    settled(served, f"/api/dumps/{dump}")
    reply = served.get(f"/api/dumps/{dump}/reproduce/Functional.softmax.1.backward", params={"step": 1})
    assert reply.status_code == 200
    found = reply.json()
    assert found["file"] == "Functional.softmax.1.py"
    assert (found["tensors"], found["files"]) == (1, 4)
    assert "Functional.softmax.1 alone, from target_fault, step 1, rank 0." in found["text"]
    assert "step1" in found["text"].partition("'data': ")[2].splitlines()[0]
    ast.parse(found["text"])


def test_what_cannot_be_run_alone_says_why(served: Client, dumps: Path) -> None:
    dump = register(served, dumps / "weird_mix")
    settled(served, f"/api/dumps/{dump}")
    reply = served.get(f"/api/dumps/{dump}/reproduce/Module.lstm.LSTM.forward.0")
    assert reply.status_code == 200
    assert reply.json()["text"] is None
    assert "how this LSTM was built" in reply.json()["refused"]
    assert served.get(f"/api/dumps/{dump}/reproduce/Functional.softmax.77").status_code == 404
    assert served.get(f"/api/dumps/{dump}/reproduce/Functional.linear.0?step=9").status_code == 404
