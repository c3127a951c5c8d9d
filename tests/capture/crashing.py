"""A run of four steps that ends in the middle of the third: `python crashing.py FOLDER HOW TASK`. Prints each finished node."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from dumpscope_capture.values.recorder import Recorder
from dumpscope_capture.write.sink import StepSink


def main(folder: Path, how: str, task: str) -> None:
    torch.manual_seed(1)
    recorder = Recorder(task=task, wants_tensor=lambda item: task == "tensor")
    for step in range(4):
        sink = StepSink(
            folder / f"step{step}" / "rank0", {"task": task, "level": "mix", "framework": "pytorch"}, recorder=recorder
        )
        for number in range(40):
            name = f"Functional.relu.{number}.forward"
            value = torch.randn(8, 8)
            body = {
                "input_args": [recorder.record(value, f"{name}.input.0")],
                "input_kwargs": {},
                "output": [recorder.record(value.relu(), f"{name}.output.0")],
            }
            sink.add(
                name, body, stack=("File train.py, line 1, in step, \n relu(x)",), parent="Module.act.ReLU.forward.0"
            )
            print(step, name, repr(float(value.max())), flush=True)
            if step == 2 and number == 20:
                end(how)
        sink.close()


def end(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "abort":
        os.abort()
    if how == "exit":
        os._exit(3)
    raise RuntimeError("the training failed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
