"""What a region gives with each backend and in the dump, and the part of it that a backend gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from dumpscope_capture.replay.arguments import Case, Tensors, tensor_specs
from dumpscope_capture.replay.judging import ERROR, SKIP, WARNING, Judgement, worst
from dumpscope_capture.replay.measures import alike
from dumpscope_capture.replay.narrowing import Narrowed, narrow
from dumpscope_capture.replay.regions import EAGER, Given, Ran, Region, excuse, verdict_of


class RegionReport:
    """One region run with each backend.

    ran, judged: by backend; recorded: judgements of the dump's results; matches: backends that give a recorded result bit for bit
    narrowed: the smallest wrong part, by backend
    """

    def __init__(self, call: dict[str, Any], case: Case, backends: Sequence[str], *, search: bool) -> None:
        self.call = call
        self.case = case
        tensors = Tensors(call["data"], case.seed)
        self.region = region = Region(call, tensors, case)
        self.error = region.looked.error
        self.ran: dict[str, Ran] = {}
        self.judged: dict[str, dict[str, Judgement]] = {}
        self.recorded: dict[str, Judgement] = {}
        self.matches: dict[str, list[str]] = {}
        self.narrowed: dict[str, Narrowed | None] = {}
        self.lacks_reference = ""
        if self.error:
            return
        piece = region.cut(0, len(region.graph.nodes))
        given = region.given(piece)
        right, moved = region.references(piece, given)
        for backend in dict.fromkeys((EAGER, *backends)):
            self.ran[backend] = region.run(piece, given, backend)
        self.lacks_reference = right.error
        if right.error:
            right, moved = self.ran[EAGER], Ran()
        plain = region.judge(piece, self.ran[EAGER].items, right, moved)
        noise = region.noise(piece, given, right, moved, plain)
        for backend, ran in self.ran.items():
            judged = {} if ran.error else region.judge(piece, ran.items, right, moved)
            self.judged[backend] = {item: excuse(one, noise.get(item)) for item, one in judged.items()}
        self._judge_eager(plain, search=search and not self.lacks_reference)
        self._judge_recorded(tensors)
        for backend in self.ran if search else ():
            if backend != EAGER and self.verdict_of(backend) == ERROR:
                self.narrowed[backend] = narrow(region, backend)

    def _judge_eager(self, plain: dict[str, Judgement], *, search: bool) -> None:
        """Eager code is wrong where an operation of it is wrong alone; else rounding adds up."""
        self.judged[EAGER] = {
            item: Judgement(
                verdict=WARNING, reason=f"rounding adds up: {one.reason}", units=one.units, measures=one.measures
            )
            if one.verdict == ERROR
            else one
            for item, one in plain.items()
        }
        found = narrow(self.region, EAGER) if search and verdict_of(plain) == ERROR else None
        if found is not None:
            self.narrowed[EAGER] = found
            self.judged[EAGER] = plain

    def verdict_of(self, backend: str) -> str:
        """Verdict on a backend; one that this machine lacks is skipped, one that raised is an error."""
        ran = self.ran[backend]
        return SKIP if ran.missing else ERROR if ran.error else verdict_of(self.judged[backend])

    @property
    def verdict(self) -> str:
        return ERROR if self.error else worst([self.verdict_of(backend) for backend in self.ran])

    @property
    def recorded_verdict(self) -> str:
        return verdict_of(self.recorded)

    @property
    def disagreeing(self) -> list[str]:
        return [backend for backend in self.ran if self.verdict_of(backend) == ERROR]

    def _judge_recorded(self, tensors: Tensors) -> None:
        """Judge what the dump holds. Where numbers are drawn at random, the recorded state of the generators must be there."""
        region = self.region
        kept = self._recorded_tensors(tensors)
        graph = region.graph
        whole = graph.piece(range(len(graph.nodes)), region.whole)
        given = Given(dict(region.values), region.wanted(whole.inputs), {})
        given.grads = {name: grad for name, grad in region.slopes().items() if name in graph.results.values()}
        if region.drawn and not region.states:
            self.recorded = dict.fromkeys(
                kept, Judgement(verdict=SKIP, reason="random, and the dump does not hold the state of the generator")
            )
            return
        backend = self.call["backend_name"]
        whole_runs = self.ran
        if region.drawn:
            names = [EAGER] if self.ran.get(backend, Ran(error="not run")).error else [EAGER, backend]
            whole_runs = {name: region.run(whole, given, name) for name in names}
        for item, tensor in kept.items():
            self.matches[item] = [name for name, ran in whole_runs.items() if _same(ran.items.get(item), tensor)]
        right, moved = region.references(whole, given)
        if right.error:
            right, moved = whole_runs[EAGER], Ran()

        def judge_whole(items: dict[str, torch.Tensor]) -> dict[str, Judgement]:
            return region.judge(whole, items, right, moved)

        noise = region.noise(whole, given, right, moved, judge_whole(whole_runs[EAGER].items))
        judged = {item: one for item, one in judge_whole(kept).items() if item in kept}
        self.recorded = {item: excuse(one, noise.get(item)) for item, one in judged.items()}
        if (
            region.drawn
            and verdict_of(self.recorded) == ERROR
            and self._draws_otherwise(whole_runs, judge_whole, noise)
        ):
            self.recorded = dict.fromkeys(
                kept, Judgement(verdict=SKIP, reason=f"random: {backend} draws other numbers than eager code")
            )

    def _draws_otherwise(
        self,
        runs: dict[str, Ran],
        judge_whole: Callable[[dict[str, torch.Tensor]], dict[str, Judgement]],
        noise: dict[str, Judgement],
    ) -> bool:
        """Whether the recorded backend is right outside of random calls but not with them, or is not here to tell."""
        backend = self.call["backend_name"]
        if backend == EAGER:
            return False
        if backend not in runs:
            return True
        excused = {item: excuse(one, noise.get(item)) for item, one in judge_whole(runs[backend].items).items()}
        return verdict_of(excused) == ERROR and self.verdict_of(backend) != ERROR

    def _recorded_tensors(self, tensors: Tensors) -> dict[str, torch.Tensor]:
        """Recorded results and gradients that have files, by the item of a run."""
        region, graph = self.region, self.region.graph
        owners = {f"output.{place}": name for place, name in graph.results.items()}
        owners.update({f"output.written.input.{place}": f"changed.{name}" for place, name in enumerate(graph.inputs)})
        kept: dict[str, torch.Tensor] = {}
        for spec in tensor_specs(self.call["results"]):
            found = tensors.from_file(spec) if spec["tensor"] in owners else None
            if found is not None:
                kept.setdefault(owners[spec["tensor"]], found)
        if region.grads_begin == "recorded":
            for name, spec in zip(graph.inputs, self.call["gradients"]):
                found = tensors.from_file(spec) if spec is not None else None
                if found is not None:
                    kept[f"gradient.{name}"] = found
        return kept

    def item(self, item: str) -> str:
        """`output.0`, `gradient.input.3`, `changed.input.7`; a value inside of the graph has its name."""
        region = self.region
        places = {name: place for place, name in reversed(region.graph.results.items())}
        head, _, name = item.rpartition(".")
        if head:
            return f"{head}.{region.item.get(name, name)}"
        return f"output.{places[item]}" if item in places else item

    def sentences(self) -> list[str]:
        """What the runs show; the first sentence is the answer."""
        if self.error:
            return [f"The graph breaks off in eager code here: {self.error}"]
        said = []
        lost = [backend for backend, ran in self.ran.items() if ran.missing]
        wrong = self.disagreeing
        others = [backend for backend in self.ran if backend not in wrong and backend not in lost]
        if EAGER in wrong:
            said.append(f"Wrong against the reference: {', '.join(wrong)}.")
        elif wrong:
            said.append(f"Reproduced: {', '.join(wrong)} disagrees with {', '.join(others)} beyond rounding.")
        elif self.recorded_verdict == ERROR:
            give = "gives" if len(others) == 1 else "give"
            said.append(f"Not reproduced: the recorded result is wrong, {', '.join(others)} here {give} a right one.")
        else:
            said.append(f"{', '.join(others)} agree{'s' * (len(others) == 1)}{self._recorded_part()}.")
        for backend in lost:
            said.append(f"{backend} does not run here: {self.ran[backend].error}")
        for backend in wrong:
            said += self._narrowed_part(backend)
        if self.region.drawn:
            names = ", ".join(self.region.graph.nodes[place]["name"] for place in sorted(self.region.drawn))
            said.append(f"It draws random numbers in {names}: the backends are compared outside of these operations.")
        if self.lacks_reference:
            said.append(f"There is no reference, eager code is taken for it: {self.lacks_reference}")
        if self.call["backward"] == "recorded" and self.region.grads_begin != "recorded":
            said.append("No recorded gradient has the shape of a result: the backward is not compared.")
        return said

    def _recorded_part(self) -> str:
        if not self.recorded:
            return ""
        if self.recorded_verdict == SKIP:
            return "; what was recorded is not judged"
        exact = set.intersection(*map(set, self.matches.values())) if self.matches else set()
        names = [backend for backend in self.ran if backend in exact]
        return f", and with the dump{' bit for bit: ' * bool(names)}{', '.join(names)}"

    def _narrowed_part(self, backend: str) -> list[str]:
        if backend not in self.narrowed:
            return []
        found = self.narrowed[backend]
        if found is None:
            return [f"{backend}: no part of the graph alone is wrong."]
        graph = self.region.graph
        count = len(found.places)
        what = "1 operation is wrong" if count == 1 else f"{count} operations are wrong together"
        said = [f"{backend}: {what}, of {len(graph.nodes)} (pieces run: {found.tried}):"]
        for place in found.places:
            frame = graph.frame(place)
            where = f"  at {frame['file']}:{frame['line']} in {frame['function']}: {frame['code']}" if frame else ""
            said.append(f"  {graph.nodes[place]['name']} = {graph.expression(place)}{where}")
        return said

    def document(self) -> dict[str, Any]:
        return {
            "name": self.call["name"],
            "backend": self.call["backend_name"],
            "torch": torch.__version__,
            "verdict": self.verdict,
            "recorded": self.recorded_verdict,
            "error": self.error,
            "operators": len(self.region.graph.nodes),
            "backends": {
                backend: {
                    "verdict": self.verdict_of(backend),
                    "error": ran.error,
                    "seconds": ran.seconds,
                    "items": self._items(self.judged[backend]),
                }
                for backend, ran in self.ran.items()
            },
            "in_dump": self._items(self.recorded),
            "matches": {self.item(item): names for item, names in self.matches.items()},
            "random": [self.region.graph.nodes[place]["name"] for place in sorted(self.region.drawn)],
            "narrowed": [one.document(self.region) for one in self.narrowed.values() if one is not None],
            "said": self.sentences(),
        }

    def _items(self, judged: dict[str, Judgement]) -> dict[str, Any]:
        return {self.item(item): one.document() for item, one in judged.items()}


def _same(one: torch.Tensor | None, other: torch.Tensor) -> bool:
    return one is not None and (one.shape, one.dtype) == (other.shape, other.dtype) and bool(alike(one, other).all())
