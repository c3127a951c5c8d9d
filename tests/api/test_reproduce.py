"""The script of a call over REST."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from warm_python import warm_python

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


def unpacked(content: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
    return folder


def test_the_archive_of_a_call_is_told_before_it_is_made_and_runs_where_it_is_unpacked(
    served: Client, fault: str, dumps: Path, tmp_path: Path
) -> None:
    done = served.get(f"/api/comparisons/{fault}").json()
    address = f"/api/dumps/{done['target']}/handover/Functional.softmax.1.forward"
    about = {"step": 1, "comparison": done["id"]}
    told = served.get(address, params=about).json()
    assert (told["name"], told["file"]) == ("Functional.softmax.1", "Functional.softmax.1.zip")
    assert (told["refused"], told["made_up"]) == (None, False)
    assert told["mind"][-1] == "it was not run where the archive was made"
    reply = served.post(address, params=about)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/zip"
    assert 'filename="Functional.softmax.1.zip"' in reply.headers["content-disposition"]
    clean = unpacked(reply.content, tmp_path / "clean")
    sizes = {str(path.relative_to(clean)): path.stat().st_size for path in clean.rglob("*") if path.is_file()}
    assert sizes == {part["name"]: part["bytes"] for part in told["parts"]}
    assert told["bytes"] == sum(sizes.values())
    assert {"reproduce.py", "stack.txt", "call.json", "plots/error-order.svg", "plots/api-distribution.svg"} <= set(
        sizes
    )
    assert "Functional.softmax.1.forward" in (clean / "plots" / "error-order.svg").read_text()
    pytest.importorskip("torch")
    command = [warm_python(), "-I", "reproduce.py", "--json"]
    ran = subprocess.run(command, cwd=clean, capture_output=True, text=True, timeout=240, check=False)
    assert json.loads(ran.stdout.splitlines()[-1])["recorded"] == "error", ran.stderr


def test_the_archive_of_a_call_with_statistics_only_says_that_its_numbers_are_made_up(
    served: Client, dumps: Path, tmp_path: Path
) -> None:
    dump = register(served, dumps / "stat_golden")
    settled(served, f"/api/dumps/{dump}")
    address = f"/api/dumps/{dump}/handover/Functional.gelu.0"
    told = served.get(address).json()
    assert told["made_up"]
    assert "its tensors are not in the dump; numbers are made up between the recorded extremes" in told["mind"]
    assert not any(part["name"].startswith(("tensors", "plots")) for part in told["parts"])
    clean = unpacked(served.post(address).content, tmp_path / "clean")
    assert "numbers are made up" in (clean / "README.txt").read_text()
    assert "MADE UP" in (clean / "reproduce.py").read_text()


def test_no_archive_is_made_of_what_cannot_be_run_alone(served: Client, dumps: Path) -> None:
    dump = register(served, dumps / "weird_mix")
    settled(served, f"/api/dumps/{dump}")
    address = f"/api/dumps/{dump}/handover/Module.lstm.LSTM.forward.0"
    told = served.get(address).json()
    assert told["parts"] == []
    assert "how this LSTM was built" in told["refused"]
    assert served.post(address).status_code == 400
    assert served.post(f"/api/dumps/{dump}/handover/Functional.softmax.77").status_code == 404
    healthy = f"/api/dumps/{dump}/handover/Functional.linear.0"
    assert served.post(healthy, params={"comparison": "none"}).status_code == 404
