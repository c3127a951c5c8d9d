"""Runs and judges one call: its results here and in the dump, and the differences between both runs."""

from __future__ import annotations

from typing import Any, Final

import torch

from dumpscope_capture.replay.arguments import PLAIN_FORMAT, Case, Tensors, lies_otherwise, tensor_specs
from dumpscope_capture.replay.judging import ERROR, PASS, SKIP, WARNING, Judgement, judge, worst
from dumpscope_capture.replay.measures import alike
from dumpscope_capture.replay.running import Outcome, Side, run
from dumpscope_capture.replay.targets import RANDOM, UNWRITTEN, short_name

MEANING: Final = (
    "A warning is more than rounding makes of such a result and less than what is surely wrong: another formula (tanh in "
    "place of erf in a gelu) or a lower precision inside looks like this. Run it on the other device too: if only one warns, "
    "it is that one."
)
"""What a warning means, beside every result that is one."""


class Report:
    """One call in one case. here, recorded: judgements by item against the reference; matches: whether a recorded result is the
    same here bit for bit."""

    def __init__(self, call: dict[str, Any], folder: str | None, case: Case) -> None:
        self.call = call
        self.case = case
        tensors = Tensors(folder, case.seed)
        self.outcome = run(call, tensors, case)
        on_cpu = Case(layout="contiguous", seed=case.seed, dtype=case.dtype)
        self.reference = run(call, tensors, on_cpu, Side(raised=True))
        self.kind = kind_of(call["target"])
        autocast = (call.get("modes") or {}).get("autocast") if case.dtype == "recorded" else None
        self.working: torch.dtype | None = getattr(torch, autocast) if autocast else None
        moved = self._run_shaken(tensors, on_cpu)
        self.here = self._judge_all({**self.outcome.outputs, **self.outcome.gradients}, moved)
        recorded = {} if case.dtype != "recorded" else self._recorded_results(tensors)
        self.made_up = list(tensors.made_up)
        if self.made_up:
            recorded = {}
        self.recorded = self._judge_all(recorded, moved)
        given = {**self.outcome.outputs, **self.outcome.gradients}
        self.matches = {item: _same(given.get(item), tensor) for item, tensor in recorded.items()}

    @property
    def verdict(self) -> str:
        """Verdict on the run here; a run that raised is an error."""
        if self.outcome.error:
            return ERROR
        if self.reference.error:
            return SKIP
        return worst([one.verdict for one in self.here.values()])

    @property
    def recorded_verdict(self) -> str:
        return worst([one.verdict for one in self.recorded.values()]) if not self.reference.error else SKIP

    def sentences(self) -> list[str]:
        """What the run shows; the first sentence is the answer."""
        if self.outcome.error:
            return [f"The call breaks off here: {self.outcome.error}"]
        if self.reference.error:
            return [f"There is no reference: {self.reference.error}"]
        said = []
        if self.verdict == SKIP:
            said.append("Nothing to judge: " + "; ".join(dict.fromkeys(one.reason for one in self.here.values())))
        elif self.verdict == ERROR:
            said.append("Reproduced: this call alone gives a wrong result here.")
        elif self.recorded_verdict == ERROR:
            word = "a doubtful" if self.verdict == WARNING else "a right"
            said.append(f"Not reproduced: the recorded result is wrong, this call alone gives {word} one here.")
        elif WARNING in (self.verdict, self.recorded_verdict):
            said += [self._describe_doubt(), MEANING]
        elif self.recorded:
            said.append("Right here, and right in the dump.")
            if any(item.startswith("gradient.") and item not in self.recorded for item in self.here):
                said[0] = (
                    "Not reproduced: right here, forward right in the dump, which does not hold all of its gradients."
                )
        else:
            said.append(
                "Not reproduced: this call alone gives a right result here; the dump holds none to compare with."
            )
        if said[0].startswith("Not"):
            said += [
                f"Differs from the call in the net: {one}." for one in differences(self.call, self.case, self.made_up)
            ]
        return said

    def _describe_doubt(self) -> str:
        """Where a result is neither right nor surely wrong, with the worst one."""
        words = {WARNING: "doubtful", PASS: "right"}
        here, there = (words.get(one, "not judged") for one in (self.verdict, self.recorded_verdict))
        doubted = [*self.recorded.items(), *self.here.items()]
        shown = next(f"{item}: {one.reason}" for item, one in doubted if one.verdict == WARNING)
        if not self.recorded:
            return f"Doubtful here, and the dump holds no result to compare with ({shown})."
        both = f"{here} here and in the dump" if here == there else f"{here} here, {there} in the dump"
        return f"{both.capitalize()} ({shown})."

    def document(self) -> dict[str, Any]:
        """As JSON, for a cell of the matrix and a row of the pre-check."""
        return {
            "name": self.call["name"],
            "verdict": self.verdict,
            "recorded": self.recorded_verdict,
            "error": self.outcome.error or self.reference.error,
            "grads": self.outcome.grads,
            "seconds": self.outcome.seconds,
            "here": {item: one.document() for item, one in self.here.items()},
            "in_dump": {item: one.document() for item, one in self.recorded.items()},
            "matches": self.matches,
            "made_up": self.made_up,
            "said": self.sentences(),
        }

    def _run_shaken(self, tensors: Tensors, on_cpu: Case) -> Outcome:
        if self.kind != "number" or self.reference.error:
            return Outcome()
        types = [spec["dtype"] for spec in tensor_specs([self.call["args"], self.call["kwargs"]])]
        own = [getattr(torch, one) for one in types if one.startswith(("float", "bfloat"))]
        if self.case.dtype != "recorded":
            own = [getattr(torch, self.case.dtype)]
        own += [self.working] if self.working else []
        if not own or any(dtype.itemsize < 2 for dtype in own):
            return Outcome()
        return run(self.call, tensors, on_cpu, Side(raised=True, shaken=max(own, key=lambda one: torch.finfo(one).eps)))

    def _judge_all(self, found: dict[str, torch.Tensor], moved: Outcome) -> dict[str, Judgement]:
        right = {**self.reference.outputs, **self.reference.gradients}
        near = {**moved.outputs, **moved.gradients}
        judged = {
            item: judge(tensor, right[item], near.get(item), kind=self.kind, working=self.working)
            for item, tensor in found.items()
            if item in right
        }
        for item in found.keys() - right.keys():
            judged[item] = Judgement(verdict=WARNING, reason="the reference gives no such result")
        return judged

    def _recorded_results(self, tensors: Tensors) -> dict[str, torch.Tensor]:
        """Results of the dump that have files, under the items of a run."""
        specs = {spec["tensor"]: spec for spec in tensor_specs(self.call["results"])}
        if self.outcome.grads == "recorded":
            specs.update(self._recorded_gradients())
        kept: dict[str, torch.Tensor] = {}
        for item, spec in specs.items():
            if spec.get("file"):
                found = tensors.from_file(spec)
                if found is not None:
                    kept[item] = found
        return kept

    def _recorded_gradients(self) -> dict[str, dict[str, Any]]:
        """Recorded gradients by item. Gradients of the last autograd node can be assigned only if it is the only node."""
        recorded = self.call["gradients"]
        if self.call["gradients_of"] == "node":
            owners = self.outcome.node
        else:
            given = tensor_specs([self.call["args"], list(self.call["kwargs"].values())])
            owners = [spec["tensor"] for spec in given if spec.get("requires_grad")]
        if len(owners) != len(recorded):
            return {}
        return {
            f"gradient.{owner}": spec for owner, spec in zip(owners, recorded) if owner is not None and spec is not None
        }


def kind_of(target: str) -> str:
    name = short_name(target)
    return "random" if name in RANDOM else "unwritten" if name in UNWRITTEN else "number"


def differences(call: dict[str, Any], case: Case, made_up: list[str]) -> list[str]:
    """What was different for the call in the net."""
    said = []
    if made_up:
        said.append(f"numbers of {', '.join(made_up[:4])} are made up between the recorded extremes")
    specs = list(tensor_specs([call["args"], call["kwargs"]]))
    devices = sorted({spec.get("device", "") for spec in specs} - {""}) or call["seen"].get("devices", [])
    others = [one for one in devices if one.split(":")[0].split(" ")[0] != case.device.split(":")[0]]
    if others:
        said.append(f"it ran on {', '.join(others)}, this on {case.device}")
    elif not devices:
        said.append(f"the dump does not say on which device it ran; this is {case.device}")
    if case.layout == "contiguous" and any(map(lies_otherwise, specs)):
        said.append("its arguments did not lie in row-major order")
    elif specs and not call["seen"].get("layouts"):
        said.append("the dump does not keep strides, offsets and storage formats of its arguments")
    formats = sorted({spec["format"] for spec in specs if spec.get("format") not in (None, PLAIN_FORMAT)})
    if formats and (not case.device.startswith("npu") or case.storage != "recorded"):
        said.append(f"tensors lay in storage format {', '.join(map(str, formats))} of an NPU, here in the plain one")
    versions = call["seen"].get("versions", {})
    if versions.get("torch") and versions["torch"] != torch.__version__:
        said.append(f"it ran with torch {versions['torch']}, this is {torch.__version__}")
    said.append(
        "in the net other calls ran before it, on streams of their own order, and in other memory, aligned otherwise"
    )
    return said


def _same(one: torch.Tensor | None, other: torch.Tensor) -> bool:
    return one is not None and (one.shape, one.dtype) == (other.shape, other.dtype) and bool(alike(one, other).all())


def line(one: Judgement) -> str:
    if one.measures is None:
        return one.reason
    found = one.measures
    return (
        f"max abs {found.max_abs:.3g}, max rel {found.max_rel:.3g}, relative L2 {found.rel_l2:.3g}, "
        f"cosine {found.cosine:.9f}, {found.ulp:.3g} ulp; {one.reason}"
    )
