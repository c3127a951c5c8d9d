"""`dumpscope parse`: statistics and call stack of chosen nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np

from dumpscope.cli.exit_codes import COMPARED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout, read_ranks, require_read
from dumpscope.cli.parser import Argument
from dumpscope.cli.printing import line, styled
from dumpscope.domain.records import STATISTICS, Kind, RankDump, item_name
from dumpscope.errors import NotFoundError, Problem, UsageError
from dumpscope.export.words import number
from dumpscope.texts import say, tell


def parse(
    path: Annotated[
        Path | None,
        Argument(),
    ] = None,
    prefix: Annotated[str | None, Argument(metavar="[NODE_PREFIX]")] = None,
) -> int:
    """Print statistics and call stack of the nodes whose name begins with NODE_PREFIX. Returns the exit status."""
    if path is None:
        from dumpscope.ptdbg.prompt import run as prompt  # noqa: PLC0415  (brings the whole comparison)

        return prompt()
    if prefix is None:
        raise UsageError(say("cli.parse_path_needs_node_prefix"), hint=say("cli.dumpscope_parse_path_node_prefix"))
    return _print_nodes(path, prefix)


def _print_nodes(path: Path, prefix: str) -> int:
    found = read = 0
    problems: list[Problem] = []
    with open_layout(path) as layout:
        for ref, dump in read_ranks(layout):
            if isinstance(dump, Problem):
                problems.append(dump)
                continue
            read += 1
            nodes = _find_nodes(dump, prefix)
            found += len(nodes)
            if nodes and len(layout.ranks) > 1:
                line(styled(tell("pipeline.step_rank", step=ref.step, rank=ref.rank or 0), "bold"))
            for node, items in nodes.items():
                _print(dump, node, items)
        require_read(read, layout, problems)
    if not found:
        raise NotFoundError(say("cli.no_node_value_begins", prefix=f"{prefix!r}"), where=str(path))
    return NOT_FULLY_JUDGED if problems else COMPARED


def _find_nodes(dump: RankDump, prefix: str) -> dict[int, list[int]]:
    """The nodes to print and their items: all items of a node whose name begins with the prefix, else items whose name does."""
    out = {}
    edges = np.searchsorted(dump.items.node, np.arange(len(dump.nodes) + 1)).tolist()
    for node, name in enumerate(dump.nodes.names):
        items = range(edges[node], edges[node + 1])
        if name.startswith(prefix):
            out[node] = list(items)
        elif prefix.startswith(name):
            chosen = [item for item in items if item_name(dump, item).startswith(prefix)]
            if chosen:
                out[node] = chosen
    return out


def _print(dump: RankDump, node: int, chosen: list[int]) -> None:
    line(styled(dump.nodes.names[node], "bold"))
    for item in chosen:
        line(f"  {item_name(dump, item)}  {_cells(dump, item)}")
    stack = int(dump.nodes.stack[node])
    if stack >= 0:
        for frame in dump.nodes.stacks[stack]:
            line(f"    {' '.join(frame.split())}")


def _cells(dump: RankDump, item: int) -> str:
    items = dump.items
    if items.kind[item] != Kind.TENSOR:
        value = items.values[items.value[item]] if items.value[item] >= 0 else "None"
        kind = items.types[items.type[item]] if items.type[item] >= 0 else ""
        return value if items.kind[item] == Kind.NONE else f"{kind} {value}"
    shape = list(items.shapes[items.shape[item]]) if items.shape[item] >= 0 else []
    dtype = items.dtypes[items.dtype[item]] if items.dtype[item] >= 0 else "?"
    stats = "  ".join(f"{name.lower()} {_statistic(dump, item, place)}" for place, name in enumerate(STATISTICS))
    digest = f"  md5 {items.hashes[items.hash[item]]}" if items.hash[item] >= 0 else ""
    return f"{dtype} {shape}  {stats}{digest}"


def _statistic(dump: RankDump, item: int, place: int) -> str:
    items = dump.items
    exact = items.wide.get((item, place))
    return number(float(items.stats[item, place]) if exact is None else exact, int(items.stat_state[item, place]))
