"""The commands of ptdbg's parse tool, from stdin and at a prompt, on dumps that the example scripts make."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import numpy as np
import pytest
from warm_python import COLD, DUMPSCOPE, warm_python

from capture.ptdbg.test_scripts import run

PARSE = ["-m", "dumpscope", "parse"]


@pytest.fixture
def dumped() -> None:
    run("single_card", "./dump", "npu")
    run("single_card", "./dump", "gpu")


def told(*commands: str, status: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [warm_python(DUMPSCOPE), *PARSE],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def one_output(tag: str) -> Path:
    (path,) = Path(f"dump/{tag}_v6.0/step0/rank0/dump").glob("Functional.linear.1.forward.output*.npy")
    return path


@pytest.mark.usefixtures("dumped")
def test_the_commands_of_the_tool_read_what_a_script_dumped() -> None:
    npu, gpu = one_output("npu"), one_output("gpu")
    array = np.load(npu)
    assert array.shape == (4, 4)
    changed = array.copy()
    changed[1, 2] += 1
    changed[3, 3] = np.nan
    np.save("changed.npy", changed)
    records = npu.parent.with_suffix(".pkl")

    out, _ = told(f"pk -f {records} -n Functional.linear.1", "exit", "pk -f nowhere")
    assert out.count("Functional.linear.1.") == 8
    assert "Functional.linear.0" not in out

    out, _ = told(f"pt -n '{npu}'", f"pt -n {npu}")
    assert "torch.float32 [4, 4], 16 elements" in out
    assert f"max {array.max():.6g}  min {array.min():.6g}" in out
    np.testing.assert_array_equal(np.loadtxt(f"{npu.stem}.txt", dtype=np.float32), array)
    assert Path(f"{npu.stem}_2.txt").exists(), "the first is not written over"

    out, _ = told(f"cn -m {npu} -g {gpu}", "cn -m changed.npy -g " + str(gpu), f"cn -m changed.npy -g {gpu} -al 2 -p 1")
    assert [text.split(" of ")[0] for text in out.splitlines() if " of 16 elements" in text] == ["0", "2", "1"]
    assert [text.split()[0] for text in out.splitlines() if text.startswith("    ") and "place" not in text] == [
        "15", "6", "15",
    ]  # fmt: skip


def test_arrays_of_two_sizes_are_filled_up_with_zeros() -> None:
    np.save("a.npy", np.array([1, 0, 3]))
    np.save("b.npy", np.array([1.0]))
    out, _ = told("cn -m a.npy -g b.npy")
    assert "filled up with zeros" in out
    assert "1 of 3 elements" in out


@pytest.mark.parametrize("kind", ["?", "i8", "f2", "c8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (40, 5)])
def test_arrays_of_every_kind_and_shape_are_shown(kind: str, shape: tuple[int, ...]) -> None:
    np.save("x.npy", np.zeros(shape, kind))
    out, _ = told("pt -n x.npy", "cn -m x.npy -g x.npy")
    assert f"{list(shape)}" in out
    assert "0 of " in out
    assert len(Path("x.txt").read_text().split()) == np.prod(shape, dtype=int)


def test_what_fails_is_said_and_the_next_command_is_read() -> None:
    np.save("x.npy", np.ones(2))
    Path("text.npy").write_text("no array")
    out, err = told(
        "vc -m a -g b", "dc -n a", "cad -m a", "tell", "pt", "pt -n missing.npy", "pt -n text.npy", "cn -m x.npy -g x.npy -p 0",
        "pk -f missing.pkl", "pt -n 'x.npy", "run", "run exit 4", "# a note", "", "pt -n x.npy", status=2,
    )  # fmt: skip
    said = err.splitlines()
    assert len(said) == 12
    assert all("msaccucmp.py" in text for text in said[:3])
    for text, part in zip(
        said[3:], ["'tell'", "-n", "missing.npy", "text.npy", "-p", "missing.pkl", "quot", "run", "4"], strict=True
    ):
        assert part in text
    assert "torch.float64 [2]" in out


def test_run_gives_a_command_to_the_shell_as_it_stands() -> None:
    out, _ = told("run echo 'a  b' | tr a c", "help")
    assert out.startswith("c  b\n")
    assert "cn -m" in out


def test_at_a_terminal_there_is_a_prompt_and_a_mistake_is_no_failure() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([COLD, *PARSE], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"tell\nexit\n")
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(60) == 0
    assert shown.count(b"Parse >>> ") == 2
    assert b"no command 'tell'" in shown


def test_a_path_without_a_beginning_is_refused() -> None:
    done = subprocess.run(
        [warm_python(DUMPSCOPE), *PARSE, "."], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "NODE_PREFIX" in done.stderr
