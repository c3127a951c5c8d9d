"""Rules proposed for renamed modules and calls make the pairs that the renaming hid, and none is proposed for strangers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.match.renames.proposals import Proposals, propose
from dumpscope.match.renames.rename_rules import parse_renames, rename
from dumpscope.match.renames.rule_texts import write_rules
from dumpscope.readers import discover, read_rank
from match.renamed import PORTED, ported


def rank(folder: Path) -> RankDump:
    return read_rank(discover(folder).ranks[0])


def proposed(target: Path, golden: Path) -> Proposals:
    return propose(rank(target), rank(golden), Options(), step=0, rank=0)


@pytest.mark.parametrize("name", ["cfg_L0_stat", "stat_golden", "md5_golden"])
@pytest.mark.parametrize("back", [False, True])
def test_rules_for_a_ported_model_pair_every_call_again(dumps: Path, tmp_path: Path, name: str, back: bool) -> None:
    changes = (*PORTED, (r"Functional\.(gelu|layer_norm|softmax)\.", r"NPU.npu_\1."))
    sides = [ported(dumps / name, tmp_path / name, changes), dumps / name]
    found = proposed(*(reversed(sides) if back else sides))
    assert found.now.left
    assert found.after.left == []
    assert found.after.pairs == len(rank(dumps / name).nodes)
    assert all(rule.pairs > 0 for rule in found.after.rules)
    assert [rule.rule for rule in found.after.rules] == [rule.text for rule in found.rules]


def test_rules_found_on_a_faulty_run_are_those_of_a_healthy_one(dumps: Path, tmp_path: Path) -> None:
    faulty = proposed(ported(dumps / "stat_fault", tmp_path / "faulty"), dumps / "stat_golden")
    healthy = proposed(ported(dumps / "stat_golden", tmp_path / "healthy"), dumps / "stat_golden")
    assert {rule.text for rule in faulty.rules} == {rule.text for rule in healthy.rules}
    assert faulty.after.left == []


@pytest.mark.parametrize(
    ("target", "golden"), [("conv_mix_stat", "stat_golden"), ("conv_L1", "conv_L0"), ("target_extra_op", "golden")]
)
def test_nothing_is_proposed_where_no_rename_explains_what_is_left(dumps: Path, target: str, golden: str) -> None:
    found = proposed(dumps / target, dumps / golden)
    assert found.rules == []
    assert found.after == found.now


@pytest.mark.parametrize(
    ("wanted", "rules"),
    [
        ({"module.layers.0.Block": "layers.0.Block", "module.GPT": "GPT"}, [r"^module\.="]),
        ({"layers.0.Block": "module.layers.0.Block", "GPT": "module.GPT"}, [r"^(.)=module.\1"]),
        ({"h.3.ffn.fc1.Linear": "h.3.mlp.fc1.Linear", "h.3.ffn.Mlp": "h.3.mlp.Mlp"}, [r"\.ffn\.=.mlp."]),
        ({"h.3.mlp.FFN": "h.3.mlp.Mlp", "norm.Norm": "norm.Norm"}, [r"\.FFN$=.Mlp"]),
        ({"h.3.block.x.X": "layers.3.x.X"}, [r"^h\.(\d+)\.block\.=layers.\1."]),
        ({"a.x.X": "b.x.X", "a.y.Y": "a.y.Y"}, [r"^a\.x\.X$=b.x.X"]),  # `a.` alone would rename what is right
        ({"a.1.X": "b.2.X"}, []),  # a number that changes is no pattern
        ({"a.X": "b=c.X"}, []),
    ],
)
def test_a_rule_says_no_more_than_what_changed(wanted: dict[str, str], rules: list[str]) -> None:
    assert [rule.text for rule in write_rules(wanted)] == rules


parts = st.sampled_from(["a", "b", "layers", "0", "7", "x y", "(", "\\1", "型"])
labels = st.lists(parts, min_size=1, max_size=4).map(".".join)


@given(st.dictionaries(labels, labels, max_size=6))
def test_rules_rename_labels_to_what_they_should_be_or_not_at_all(wanted: dict[str, str]) -> None:
    rules = write_rules(wanted)
    made = rename(wanted, parse_renames([rule.text for rule in rules]))
    for label, fresh in wanted.items():
        assert made.get(label, (label, 0))[0] in (label, fresh)
    for rule in rules:
        assert all(made[label][0] == fresh == wanted[label] for label, fresh in rule.examples)
