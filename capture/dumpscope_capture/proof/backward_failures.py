"""Finds the call of the program whose node of the autograd graph fails in backward or makes NaN.

    call --begins at sequence number n, ends at m--> nodes n..m get two hooks that know the call and its stack
    backward --first hook--> node --second hook-->   first hook without second: this node failed

The nodes hold the hooks, so they live as long as the graph. torch's anomaly mode can be turned on too: it makes NaN an error and
knows the stacks of nodes that no listed call made, at several times the cost.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, Final, Literal, cast

import torch
from torch.autograd.graph import Node

from dumpscope_capture.calls import observers
from dumpscope_capture.calls.call import Call, differentiable
from dumpscope_capture.calls.edges import is_new, node_of, sequence_number
from dumpscope_capture.context import LOG, Unobserved, call_stack
from dumpscope_capture.proof.call_counter import CALL_COUNTER
from dumpscope_capture.proof.module_paths import ModulePaths
from dumpscope_format.older_python import dataclass, without_prefix
from dumpscope_format.recipe import BLOCKING
from dumpscope_format.saved_call import bare

How = Literal["table", "nan", "anomaly"]
HOWS: Final = ("table", "nan", "anomaly")

RUNNING_LIMIT: Final = 1000
FAILURE_LIMIT: Final = 100
_MARK: Final = "dumpscope"
_TRACE: Final = "traceback_"
"""Key under which anomaly mode keeps the forward stack of a node."""

_AFTER: Final = re.compile(r"Function '?(\w+)'? returned (nan values|an invalid gradient)")
"""Errors that autograd raises about a node after its kernel has run: before its second hook, or after it."""

_TORCH: Final = os.path.dirname(torch.__file__) + os.sep
_ENGINE: Final = os.path.join(_TORCH, "autograd") + os.sep


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a node of the graph comes from.

    name: of the call, `Functional.group_norm.3`, None for a function that is not listed; module: that it was called in
    stack: as in stack.json, innermost first; device: type, "npu"
    """

    name: str | None
    module: str | None
    stack: tuple[str, ...]
    device: str

    @property
    def place(self) -> str | None:
        """The innermost frame of the program's own code: `File train.py, line 12, in forward, \\n F.group_norm(...)`."""
        own = (text for text in self.stack if not without_prefix(text, "File ").startswith(_TORCH))
        return next(own, self.stack[0] if self.stack else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed backward.

    node: of the graph, "NativeGroupNormBackward0", None if unknown; nan: it made NaN from gradients without NaN
    before: the call whose backward ran last, if the origin is unknown; launches: warning about asynchronous kernels
    """

    node: str | None
    origin: Origin | None
    message: str
    nan: bool = False
    before: str | None = None
    launches: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON has it."""
        origin = self.origin
        return {
            "call": origin.name if origin else None, "node": self.node, "module": origin.module if origin else None,
            "place": origin.place if origin else None, "stack": list(origin.stack) if origin else [], "nan": self.nan,
            "message": self.message, "before": self.before, "launches": self.launches,
        }  # fmt: skip

    def __str__(self) -> str:
        what = "made NaN" if self.nan else "failed"
        origin = self.origin
        if origin is None:
            known = f" in {self.node}" if self.node else ""
            after = f"; the last backward that ran was that of {self.before}" if self.before else ""
            return f"dumpscope: the backward {what}{known}, which no listed call made{after}"
        lines = [f"dumpscope: the backward of {origin.name or 'a function that is not listed'} {what}, in {self.node}"]
        if origin.module:
            lines.append(f"  called in module {origin.module}")
        if origin.place:
            lines.append("  " + origin.place.replace(", \n ", ":\n    "))
        if self.launches:
            lines.append(f"  {self.launches}")
        if origin.name:
            lines.append(f'  to save its arguments: save_call("{origin.name}"); to run it differently: intervene')
        return "\n".join(lines)


def launch_warning(device: str, environment: Mapping[str, str]) -> str | None:
    """Warning that a stack may belong to a later call, as kernels run asynchronously. None where every kernel is waited for."""
    switch = BLOCKING.get(device)
    if switch is None or environment.get(switch, "0") not in ("", "0"):
        return None
    return (
        f"kernels were launched asynchronously ({switch} is not set): the one that failed may be an earlier one; "
        f"run again with {switch}=1"
    )


class Explainer:
    """Knows which call made a node, for graphs made while it is installed.

    how: "table" names the call behind an exception; "nan" also looks for the first NaN, which waits for the device at every node;
    "anomaly" also turns torch's anomaly mode on, in which NaN raises
    """

    def __init__(self, how: How = "anomaly") -> None:
        if how not in HOWS:
            raise ValueError(f"how is {how!r}; allowed: {', '.join(HOWS)}")
        self.how = how
        self.failures: deque[Failure] = deque(maxlen=FAILURE_LIMIT)
        self.modules = ModulePaths()
        self.running: deque[_MarkedNode] = deque(maxlen=RUNNING_LIMIT)
        self.last: _MarkedNode | None = None
        self.found_nan = False
        self._lock = threading.Lock()
        self._anomaly: Any = None

    # -- on and off ----------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Follow modules, and turn anomaly mode on."""
        self.modules.install()
        if self.how == "anomaly":
            self._anomaly = torch.autograd.set_detect_anomaly(True, check_nan=True)

    def remove(self) -> None:
        self.modules.remove()
        if self._anomaly is not None:
            self._anomaly.__exit__()
            self._anomaly = None

    def __enter__(self) -> Explainer:
        self.install()
        observers.OBSERVERS.append(self)
        CALL_COUNTER.retain()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        observers.OBSERVERS.remove(self)
        CALL_COUNTER.release()
        self.remove()
        if error is not None:
            self.note_exception(error)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def begin(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        call.began = -1
        if not torch._C.is_grad_enabled():
            return
        stack = call.stack or call_stack(frame)
        with Unobserved():
            call.began = sequence_number()
            for tensor in differentiable(args, kwargs):
                node = node_of(tensor)
                if node is not None and _MARK not in _notes(node) and node._sequence_nr() < call.began:
                    trace = tuple(_frames(_notes(node).get(_TRACE, ())))
                    self._mark(node, Origin(name=None, module=None, stack=trace, device=tensor.device.type))
            call.origin = stack, self.modules.now

    def end(self, call: Call, result: Any) -> None:
        if call.began < 0:
            return
        with Unobserved():
            todo: list[Node] = []
            origin = None
            for tensor in differentiable((result,), {}):
                node = node_of(tensor)
                if node is not None:
                    todo.append(node)
                    if origin is None:
                        stack, module = call.origin
                        origin = Origin(name=bare(call.name), module=module, stack=stack, device=tensor.device.type)
            while todo and origin is not None:
                node = todo.pop()
                if is_new(node, call.began) and _MARK not in _notes(node):
                    self._mark(node, origin)
                    todo += [below for below, _ in node.next_functions if below is not None]

    def _mark(self, node: Node, origin: Origin) -> None:
        _notes(node)[_MARK] = True
        marked = _MarkedNode(node.name(), origin)
        node.register_prehook(_EnterPrehook(self, marked))
        node.register_hook(_LeaveHook(self, marked))

    # -- failures -----------------------------------------------------------------------------------------------------

    def note_exception(self, error: BaseException) -> None:
        """Add a note to an exception of a backward, once: the call that it belongs to."""
        if not _from_engine(error) or getattr(error, "__dumpscope__", False):
            return
        with self._lock:
            marked = self.running[-1] if self.running else None
            self.running.clear()
            last, self.last = self.last, None
        message = str(error).partition("\n")[0]
        after = _AFTER.search(str(error))
        node = marked.node if marked is not None else None
        if after is not None:
            node = after[1]
            marked = next((one for one in (marked, last) if one is not None and one.node == node), None)
        origin = marked.origin if marked is not None else None
        failure = Failure(
            node=node, origin=origin, message=message, nan=after is not None and after[2] == "nan values",
            before=last.origin.name if last is not None and origin is None else None,
            launches=launch_warning(origin.device, os.environ) if origin is not None else None,
        )  # fmt: skip
        self._add_failure(failure)
        if sys.version_info >= (3, 11):
            error.add_note(str(failure))
        error.__dumpscope__ = True  # type: ignore[attr-defined]

    def look(
        self, marked: _MarkedNode, made: Sequence[torch.Tensor | None], given: Sequence[torch.Tensor | None]
    ) -> None:
        """Report a node that made NaN from gradients without NaN. made: gradients of its inputs; given: of its outputs."""
        if self.found_nan or not _has_nan(made) or _has_nan(given):
            return
        self.found_nan = True
        message = "it made NaN from gradients without NaN"
        self._add_failure(Failure(node=marked.node, origin=marked.origin, message=message, nan=True))

    def _add_failure(self, failure: Failure) -> None:
        self.failures.append(failure)
        LOG.error("%s", without_prefix(str(failure), "dumpscope: "))

    def report(self) -> dict[str, Any]:
        return {"backward_failures": [failure.as_json() for failure in self.failures]} if self.failures else {}


@dataclass(frozen=True, slots=True)
class _MarkedNode:
    """Name and origin of a node."""

    node: str
    origin: Origin


class _EnterPrehook:
    """Prehook of a node."""

    __slots__ = ("_explainer", "_marked")

    def __init__(self, explainer: Explainer, marked: _MarkedNode) -> None:
        self._explainer = explainer
        self._marked = marked

    def __call__(self, gradients: Sequence[torch.Tensor | None]) -> None:
        self._explainer.running.append(self._marked)


class _LeaveHook:
    """Hook of a node."""

    __slots__ = ("_explainer", "_marked")

    def __init__(self, explainer: Explainer, marked: _MarkedNode) -> None:
        self._explainer = explainer
        self._marked = marked

    def __call__(self, made: Sequence[torch.Tensor | None], given: Sequence[torch.Tensor | None]) -> None:
        explainer, marked = self._explainer, self._marked
        explainer.last = marked
        try:
            explainer.running.remove(marked)
        except ValueError:  # after a failure that was reported
            return
        if explainer.how == "nan":
            try:
                explainer.look(marked, made, given)
            except Exception as error:
                LOG.debug("gradients of %s could not be looked at: %s", marked.node, error)


def _has_nan(gradients: Sequence[torch.Tensor | None]) -> bool:
    with Unobserved():
        return any(
            bool(gradient.isnan().any())
            for gradient in gradients
            if gradient is not None and (gradient.is_floating_point() or gradient.is_complex())
        )


def _notes(node: Node) -> dict[str, Any]:
    """The metadata dict of a node, which any code may use."""
    return cast("dict[str, Any]", node.metadata)


def _from_engine(error: BaseException) -> bool:
    """Whether an exception came through autograd's engine."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(_ENGINE):
            return True
        trace = trace.tb_next
    return False


def _frames(lines: Iterable[str]) -> list[str]:
    """Frames from the text of anomaly mode, innermost first, in the form of `call_stack`."""
    found = []
    for line in lines:
        match = re.match(r'\s*File "(.*)", line (\d+), in (\S+)\n\s*(.*)', line)
        if match is not None:
            found.append(f"File {match[1]}, line {match[2]}, in {match[3]}, \n {match[4]}")
    return found[::-1]


def explain_backward(how: How = "anomaly") -> Explainer:
    """Name the call of the program behind a backward that fails or makes NaN, for graphs made inside the block.

        with explain_backward():
            model(x).sum().backward()

    The name is in a note of the exception, in the log, and in `failures`. how: "anomaly": torch's anomaly mode, where NaN raises;
    "nan": finds the first NaN without anomaly mode; "table": exceptions only, at little cost.
    """
    return Explainer(how)
