"""The graphs that torch.compile has made in this process, with their source text, and the globals by which they are called.

dynamo gives each graph to a backend and stores what comes back as a global `__compiled_fn_1` of the module whose function was
compiled; the compiled function calls this global. Two functions of dynamo are replaced from the first `start` of a recording
that needs them: one notes the text of a graph before a backend changes it, the other the place of the global.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from dumpscope_capture.context import LOG
from dumpscope_capture.hooks.graph_documents import describe_graph
from dumpscope_format.older_python import dataclass

GLOBALS: Final = "__compiled_fn"
RESUMED: Final = "torch_dynamo_resume_in_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One compiled graph.

    text: Python source, None where it was compiled before the recording
    document: JSON text from which it can be run again (dumpscope_format.compiled_graph)
    code: name of the compiled function; whole: it holds all of this function, as nothing in it broke the graph
    breaks: it ends where the function broke it
    place: file name and line; names: of the inputs; backend: name of the compiler
    """

    text: str | None = None
    document: str | None = None
    code: str = ""
    whole: bool = False
    breaks: bool = False
    place: str = ""
    names: tuple[str, ...] = ()
    backend: str = ""


UNKNOWN: Final = Graph()


class Graphs:
    """Graphs by the name of their global. Safe for threads. made: number of graphs given to backends"""

    def __init__(self) -> None:
        self._known: dict[str, Graph] = {}
        self._pending = threading.local()
        self._watching = False
        self.made = 0
        self.on_new: Callable[[dict[str, Any], str], None] | None = None

    def watch(self) -> bool:
        """Note all graphs from now on. False where torch.compile was not used yet, or is unlike any version known."""
        if self._watching:
            return True
        if "torch._dynamo" not in sys.modules:
            return False
        try:
            from torch._dynamo.output_graph import OutputGraph  # noqa: PLC0415 - importing it takes seconds
            from torch._dynamo.utils import CleanupHook  # noqa: PLC0415

            compile_graph, create = OutputGraph.call_user_compiler, CleanupHook.create
        except (ImportError, AttributeError) as error:
            LOG.warning("this torch.compile is not known (%s): its regions are not recorded", error)
            return False

        def call_user_compiler(output: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.made += 1
            try:
                self._pending.graph = _describe(output, graph)
            except Exception as error:
                LOG.debug("the text of a compiled graph cannot be kept", exc_info=error)
            return compile_graph(output, graph, *args, **kwargs)

        def create_global(scope: dict[str, Any], name: str, value: Any) -> Any:
            hook = create(scope, name, value)
            if name.startswith(GLOBALS):
                self._known[name] = getattr(self._pending, "graph", None) or UNKNOWN
                self._pending.graph = None
                if self.on_new is not None:
                    self.on_new(scope, name)
            return hook

        OutputGraph.call_user_compiler = call_user_compiler  # type: ignore[method-assign, assignment]
        CleanupHook.create = staticmethod(create_global)  # type: ignore[assignment]
        self._watching = True
        return True

    def find(self, name: str) -> Graph:
        return self._known.get(name, UNKNOWN)

    def places(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Scope and name of each graph's global, also of graphs made before `watch`."""
        from torch._dynamo.utils import CleanupManager  # noqa: PLC0415

        for made in list(CleanupManager.instance.values.values()):
            for hook in made:
                if hook.name.startswith(GLOBALS) and hook.name in hook.scope:
                    yield hook.scope, hook.name


def _describe(output: Any, graph: Any) -> Graph:
    code = output.root_tx.f_code
    reason = output.compile_subgraph_reason
    return Graph(
        text=graph.print_readable(print_output=False),
        document=json.dumps(describe_graph(graph), separators=(",", ":")),
        code=code.co_name,
        whole=not getattr(reason, "graph_break", True) and not code.co_name.startswith(RESUMED),
        breaks=bool(getattr(reason, "graph_break", False)),
        place=f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}",
        names=tuple(node.name for node in graph.graph.nodes if node.op == "placeholder"),
        backend=_backend(output.compiler_fn),
    )


def _backend(compiler: Any) -> str:
    """Name of a backend: of the function, or of what dynamo wrapped around it."""
    for _ in range(8):
        inner = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(compiler, "inner_convert", None)
        if inner is None:
            break
        compiler = inner
    name = getattr(compiler, "compiler_name", None) or getattr(compiler, "__name__", type(compiler).__name__)
    return str(name)


GRAPHS: Final = Graphs()
"""The graphs of this process."""
