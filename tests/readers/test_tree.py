"""The module tree: parents, order in time, gaps filled, cycles cut, and inference where construct.json is missing."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.domain.records import Direction, NodeKind, Nodes, Tree
from dumpscope.readers import discover, read_rank
from dumpscope.readers.msprobe.rank import DIRECTION_CODES, KIND_CODES
from dumpscope.readers.records.tree import Links, build_tree
from dumpscope_format.naming import parse


def make_nodes(names: list[str], stacks: dict[str, tuple[str, ...]] | None = None) -> Nodes:
    parts = [parse(name) for name in names]
    labels = sorted({part.label for part in parts})
    distinct = sorted(set((stacks or {}).values()))
    return Nodes(
        names=names,
        kind=np.array([KIND_CODES[part.kind] for part in parts], np.int8),
        direction=np.array([DIRECTION_CODES[part.direction] for part in parts], np.int8),
        label=np.array([labels.index(part.label) for part in parts], np.int32),
        labels=labels,
        index=np.array([part.index for part in parts], np.int32),
        stack=np.array([distinct.index(stacks[name]) if stacks and name in stacks else -1 for name in names], np.int32),
        stacks=distinct,
        micro=np.full(len(names), -1, np.int32),
    )


def parent_of(tree: Tree, name: str) -> str | None:
    above = int(tree.parent[tree.names.index(name)])
    return None if above < 0 else tree.names[above]


def walked(tree: Tree) -> list[str]:
    return [tree.names[entry] for entry in np.argsort(tree.order)]


def check(tree: Tree) -> None:
    """Every tree: orders are a permutation, parents come before children."""
    count = len(tree)
    assert sorted(tree.order.tolist()) == list(range(count))
    assert len(tree.parent) == count
    for entry, above in enumerate(tree.parent.tolist()):
        assert -1 <= above < count
        if above >= 0:
            assert tree.order[above] < tree.order[entry]


def test_every_real_tree_is_sound_and_holds_what_construct_says(dumps: Path) -> None:
    for file in sorted(dumps.glob("*/step*/*/dump.json")):
        dump = read_rank(discover(file).ranks[0])
        check(dump.tree)
        assert dump.tree.names[: len(dump.nodes)] == dump.nodes.names
        construct = file.with_name("construct.json")
        truth = json.loads(construct.read_text()) if construct.exists() else {}
        assert dump.tree.inferred == (not truth and len(dump.nodes) > 0)
        for name, above in truth.items():
            assert parent_of(dump.tree, name) == above


def test_a_tree_is_walked_in_the_order_of_the_run(dumps: Path) -> None:
    tree = read_rank(discover(dumps / "golden").ranks[0]).tree
    assert walked(tree)[:17] == [
        "Module.tok.Embedding.forward.0",
        "Functional.embedding.0.forward",
        "Torch.arange.0.forward",
        "Module.pos.Embedding.forward.0",
        "Functional.embedding.1.forward",
        "Tensor.__add__.0.forward",
        "Module.layers.0.Block.forward.0",
        "Module.layers.0.ln1.LayerNorm.forward.0",
        "Functional.layer_norm.0.forward",
        "Module.layers.0.attn.Attn.forward.0",
        "Module.layers.0.attn.qkv.Linear.forward.0",
        "Functional.linear.0.forward",
        "Tensor.permute.0.forward",
        "Tensor.unbind.0.forward",
        "Tensor.transpose.0.forward",
        "Torch.matmul.0.forward",
        "Tensor.__mul__.0.forward",
    ]
    words = walked(tree)
    assert words.index("Functional.cross_entropy.0.forward") < words.index("Functional.cross_entropy.0.backward")
    assert words.index("Module.layers.1.Block.backward.0") < words.index("Module.layers.0.Block.backward.0")
    assert words[words.index("optimizer") + 1] == "Tensor.add_.0.forward"


def test_gradients_hang_under_the_backward_call_that_made_them(dumps: Path) -> None:
    tree = read_rank(discover(dumps / "golden").ranks[0]).tree
    assert (
        parent_of(tree, "Module.layers.0.mlp.fc1.Linear.parameters_grad.0")
        == "Module.layers.0.mlp.fc1.Linear.backward.0"
    )
    tree = read_rank(discover(dumps / "microbatch").ranks[0]).tree
    for number in (0, 1):
        assert parent_of(tree, f"Module.2.Linear.parameters_grad.{number}") == f"Module.2.Linear.backward.{number}"
        assert parent_of(tree, f"Module.0.Linear.parameters_grad.{number}") == f"Module.0.Linear.backward.{number}"


def test_a_gradient_without_backward_hangs_under_forward_and_else_at_the_top() -> None:
    nodes = make_nodes(["Module.a.A.forward.0", "Module.a.A.parameters_grad.0", "Module.b.B.parameters_grad"])
    tree, _ = build_tree(nodes, Links(parents={"Module.a.A.forward.0": None}))
    assert parent_of(tree, "Module.a.A.parameters_grad.0") == "Module.a.A.forward.0"
    assert parent_of(tree, "Module.b.B.parameters_grad") is None


def test_parents_without_data_become_virtual_entries(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "conv_mix_stat").ranks[0])
    entry = dump.tree.names.index("Module.relu.ReLU.backward.1")
    assert entry >= len(dump.nodes)
    assert entry in dump.tree.parent.tolist()


def test_a_node_that_construct_does_not_know_goes_where_its_twin_is() -> None:
    links = {
        "Functional.f.0.forward": "Module.m.M.forward.0",
        "Module.m.M.forward.0": None,
        "Module.m.M.backward.0": None,
    }
    nodes = make_nodes([*links, "Functional.f.0.backward", "Module.m.x.X.forward.0"])
    tree, problems = build_tree(nodes, Links(parents=dict(links)))
    assert parent_of(tree, "Functional.f.0.backward") == "Module.m.M.backward.0"
    assert parent_of(tree, "Module.m.x.X.forward.0") == "Module.m.M.forward.0"
    assert problems == []


def test_cycles_are_cut_and_reported() -> None:
    names = ["Module.a.A.forward.0", "Module.b.B.forward.0", "Module.c.C.forward.0", "Functional.f.0.forward"]
    parents = {names[0]: names[1], names[1]: names[2], names[2]: names[0], names[3]: names[3]}
    tree, problems = build_tree(make_nodes(names), Links(parents=dict(parents)))
    check(tree)
    assert [kind for kind, _ in problems] == ["cycle"]
    assert "2 entries" in problems[0][1]


@pytest.mark.parametrize("name", ["cfg_L0_stat", "weird_L0", "dist2_stat_golden", "golden", "modellist"])
def test_modules_without_construct_are_placed_by_their_paths(dumps: Path, name: str) -> None:
    dump = read_rank(discover(dumps / name).ranks[0])
    tree, _ = build_tree(dump.nodes, None)
    check(tree)
    assert tree.inferred
    modules = np.flatnonzero(dump.nodes.kind == NodeKind.MODULE)
    assert [parent_of(tree, tree.names[node]) for node in modules] == [
        parent_of(dump.tree, tree.names[node]) for node in modules
    ]


def test_apis_without_construct_mostly_find_their_module(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "golden").ranks[0])
    tree, _ = build_tree(dump.nodes, None)
    names = [
        name for name in dump.nodes.names if "add_" not in name
    ]  # the optimizer leaves no trace but construct.json
    wrong = [name for name in names if parent_of(tree, name) != parent_of(dump.tree, name)]
    assert len(wrong) <= 5, wrong


def test_an_l1_dump_is_grouped_by_the_forward_functions_on_its_stacks(dumps: Path) -> None:
    dump = read_rank(discover(dumps / "cfg_L1_stat").ranks[0])
    tree = dump.tree
    assert tree.inferred
    one, two = (parent_of(tree, f"Functional.softmax.{number}.forward") for number in (0, 1))
    assert one is not None
    assert two is not None
    assert one != two
    assert parent_of(tree, "Functional.softmax.0.backward") == one.replace("forward", "backward")
    assert parent_of(tree, "Functional.cross_entropy.0.forward") is None
    assert parent_of(tree, "Torch.matmul.0.forward") == one


def test_without_any_stack_calls_lie_in_two_flat_groups() -> None:
    names = ["Functional.a.0.forward", "Functional.b.0.forward", "Functional.b.0.backward", "odd"]
    tree, _ = build_tree(make_nodes(names), None)
    check(tree)
    assert [parent_of(tree, name) for name in names] == ["forward", "forward", "backward", None]
    assert walked(tree) == ["forward", *names[:2], "backward", names[2], "odd"]
    assert tree.inferred


def test_an_empty_dump_has_an_empty_tree() -> None:
    tree, problems = build_tree(make_nodes([]), None)
    assert (len(tree), tree.inferred, problems) == (0, False, [])


ANY = [
    *("Functional.f.0.forward", "Functional.f.0.backward", "Module.a.A.forward.0", "Module.a.b.B.forward.0"),
    *(
        "Module.a.A.backward.0",
        "Module.a.A.parameters_grad.0",
        "Module.a.b.B.backward.0",
        "x.0.debug",
        "odd",
        "optimizer",
    ),
    "Functional.g.1.forward",
]
FRAMES = ["File a.py, line 3, in forward, \n x", "File b.py, line 2, in forward, \n y", "?"]


@settings(max_examples=200, deadline=None)
@given(
    st.permutations(ANY).flatmap(lambda names: st.integers(0, len(names)).map(lambda size: names[:size])),
    st.none() | st.dictionaries(st.sampled_from([*ANY, "v1", "v2"]), st.none() | st.sampled_from([*ANY, "v1", "v3"])),
    st.dictionaries(st.sampled_from(ANY), st.lists(st.sampled_from(FRAMES)).map(tuple)),
)
def test_any_links_give_a_sound_tree(
    names: list[str], parents: dict[str, str | None] | None, stacks: dict[str, tuple[str, ...]]
) -> None:
    tree, _ = build_tree(make_nodes(names, stacks), None if parents is None else Links(parents=parents))
    check(tree)
    assert tree.names[: len(names)] == names
    assert len(set(tree.names)) == len(tree.names)


def test_a_chain_of_fifty_thousand_parents_is_no_trouble() -> None:
    names = [f"Module.m{number}.M.forward.0" for number in range(50_000)]
    parents: dict[str, str | None] = dict(zip(names, [*names[1:], None], strict=True))
    start = time.perf_counter()
    tree, problems = build_tree(make_nodes_fast(names), Links(parents=parents))
    assert time.perf_counter() - start < 5
    assert problems == []
    assert tree.order.tolist() == list(range(49_999, -1, -1))


def make_nodes_fast(names: list[str]) -> Nodes:
    count = len(names)
    numbers = np.arange(count, dtype=np.int32)
    return Nodes(
        names=names, kind=np.full(count, NodeKind.MODULE, np.int8), direction=np.full(count, Direction.FORWARD, np.int8),
        label=numbers, labels=[name[7:-10] for name in names], index=np.zeros(count, np.int32),
        stack=np.full(count, -1, np.int32), stacks=[], micro=np.full(count, -1, np.int32),
    )  # fmt: skip
