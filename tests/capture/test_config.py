"""config.json: every key is read, and every error names key, value and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dumpscope_capture.calls.selection import sides
from dumpscope_capture.config import Config, ConfigError, load, numbers


def _write(path: Path, data: Any) -> str:
    file = path / "config.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    return str(file)


def test_a_whole_file_is_read_and_arguments_override_it(tmp_path: Path) -> None:
    path = _write(tmp_path, {
        "task": "tensor", "dump_path": "/a", "level": "mix", "rank": [1, "3-5"], "step": ["0", 7], "precision": "high",
        "extra_info": False, "dump_enable": True, "risk_level": "ALL", "custom_op_namespaces": ["mine"], "backward": "msprobe",
        "tensor": {"scope": [], "list": ["relu"], "data_mode": ["forward", "input"], "summary_mode": "md5"},
        "statistics": {"tensor_list": ["x"]},
    })  # fmt: skip
    config, notes = load(path)
    assert (config.task, config.rank, config.step, config.list, config.summary_mode) == (
        "tensor",
        (1, 3, 4, 5),
        (0, 7),
        ("relu",),
        "md5",
    )
    assert (config.extra_info, config.dump_enable, config.risk_level, config.backward) == (
        False,
        True,
        "ALL",
        "msprobe",
    )
    assert not notes
    config, _ = load(path, task="statistics", dump_path="/b", level="L0", step=[9])
    assert (config.task, config.dump_path, config.level, config.step, config.tensor_list) == (
        "statistics",
        "/b",
        "L0",
        (9,),
        ("x",),
    )


def test_an_empty_file_and_no_file_mean_the_defaults(tmp_path: Path) -> None:
    assert load(_write(tmp_path, {}))[0] == load()[0] == Config()
    assert load(_write(tmp_path, {"rank": None, "statistics": None, "level": None}))[0] == Config()


@pytest.mark.parametrize(
    ("data", "key", "allowed"),
    [
        ({"task": "statistic"}, "task", "statistics, tensor"),
        ({"task": "run_ut"}, "task", "acc_check now"),
        ({"task": "nan_check"}, "task", "dumpscope overflow"),
        ({"level": "l1"}, "level", "L0, L1, L2, mix, debug"),
        ({"dump_path": ""}, "dump_path", "a path"),
        ({"dump_path": 3}, "dump_path", "a path"),
        ({"rank": 0}, "rank", "list of numbers"),
        ({"step": [True]}, "step", "list of numbers"),
        ({"step": ["4-2"]}, "step", "ranges"),
        ({"step": [-1]}, "step", "0 to 1000000"),
        ({"step": [1_000_001]}, "step", "0 to 1000000"),
        ({"async_dump": "yes"}, "async_dump", "true or false"),
        ({"async_dump": True, "task": "tensor"}, "async_dump", "list"),
        ({"risk_level": "LOW"}, "risk_level", "ALL, CORE, FOCUS"),
        ({"precision": "highest"}, "precision", "low, high"),
        ({"backward": "theirs"}, "backward", "own, msprobe"),
        ({"statistics": {"summary_mode": "sha"}}, "summary_mode", "statistics, md5, xor"),
        ({"statistics": {"data_mode": ["all", "input"]}}, "data_mode", '"all"'),
        ({"statistics": {"data_mode": ["in"]}}, "data_mode", "forward, backward"),
        ({"statistics": {"list": "relu"}}, "list", "list of texts"),
        ({"statistics": {"scope": ["Functional.relu.0.forward"]}}, "scope", "first and the last"),
        ({"statistics": {"scope": "Functional.relu.0.forward"}}, "scope", "list of texts"),
        ({"statistics": {"scope": ["relu", "gelu"]}}, "scope", "Functional.relu.0.forward"),
        (
            {"level": "L0", "statistics": {"scope": ["Functional.relu.0.forward"] * 2}},
            "scope",
            "Module.path.Class.forward.0",
        ),
        ({"statistics": [1]}, "statistics", "an object"),
        ({"task": "tensor", "tensor": {"bench_path": "/a"}}, "bench_path", "md5"),
        ({"task": "tensor", "tensor": {"diff_nums": 0}}, "diff_nums", "-1"),
        ({"task": "overflow_check", "overflow_check": {"overflow_nums": "1"}}, "overflow_nums", "number"),
        ({"task": "structure", "level": "L2"}, None, ""),
        ({"task": "tensor", "level": "debug", "custom_op_namespaces": [3]}, "custom_op_namespaces", "list of texts"),
        ({"task": "structure", "level": "debug"}, None, ""),
    ],
)
def test_errors_name_key_value_and_what_is_allowed(tmp_path: Path, data: Any, key: str | None, allowed: str) -> None:
    path = _write(tmp_path, data)
    if key is None:
        config, notes = load(path)
        assert config.level == "mix"
        assert "mix is used" in notes[0]
        return
    with pytest.raises(ConfigError) as raised:
        load(path)
    assert raised.value.key == key
    assert allowed in str(raised.value)
    assert repr(raised.value.value) in str(raised.value)


def test_a_task_that_records_nothing_says_so(tmp_path: Path) -> None:
    config, notes = load(_write(tmp_path, {"task": "acc_check", "acc_check": {"white_list": ["relu"]}}))
    assert config.white_list == ("relu",)
    assert [note for note in notes if "nothing is recorded" in note]
    assert not [note for note in load()[1] if "nothing is recorded" in note]


@pytest.mark.parametrize("text", ["[1]", "{", "\x00"])
def test_a_file_that_is_no_object_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="config_path"):
        load(path)
    with pytest.raises(ConfigError, match=r"existing .json file"):
        load(tmp_path / "absent.json")


def test_unknown_keys_are_named_and_ignored(tmp_path: Path) -> None:
    _, notes = load(_write(tmp_path, {"enable_dataloader": True, "typo": 1, "statistics": {"lines": [], "lists": []}}))
    assert [note.split("'")[1] for note in notes] == [
        "enable_dataloader",
        "typo",
        "statistics.lines",
        "statistics.lists",
    ]


@given(
    st.lists(
        st.one_of(
            st.integers(0, 1000), st.integers(0, 1000).map(str), st.tuples(st.integers(0, 50), st.integers(0, 50))
        )
    )
)
def test_ranges_mean_the_numbers_they_span(parts: list[Any]) -> None:
    expected: set[int] = set()
    given_parts = []
    for part in parts:
        if isinstance(part, tuple):
            low, high = sorted(part)
            expected.update(range(low, high + 1))
            given_parts.append(f"{low}-{high}")
        else:
            expected.add(int(part))
            given_parts.append(part)
    assert numbers("step", given_parts) == tuple(sorted(expected))


@given(st.sets(st.sampled_from(["forward", "backward", "input", "output"])))
def test_a_missing_direction_or_side_means_both(words: set[str]) -> None:
    kept = sides(words)
    assert kept.forward == ("forward" in words or not {"forward", "backward"} & words)
    assert kept.backward == ("backward" in words or not {"forward", "backward"} & words)
    assert kept.input == ("input" in words or not {"input", "output"} & words)
    assert kept.output == ("output" in words or not {"input", "output"} & words)


def test_ranges_may_take_every_nth_number() -> None:
    config, _ = load(None, step=["0-20:10", 3])
    assert config.step == (0, 3, 10, 20)
    for wrong in ("0-20:0", "0-20:", "5:2"):
        with pytest.raises(ConfigError, match="ranges like"):
            load(None, step=[wrong])


@pytest.mark.parametrize("value", [0, -1, True, "2", float("nan"), float("inf")])
def test_a_size_is_a_number_above_0(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ConfigError, match="max_gb"):
        load(_write(tmp_path, {"max_gb": value}))


def test_run_json_tells_settings_that_differ_from_the_default() -> None:
    assert Config(level="L0", step=(3,)).non_defaults() == {"level": "L0", "step": (3,)}


def test_every_key_stands_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "capture.md").read_text(encoding="utf-8")
    missing = [name for name in Config.__dataclass_fields__ if name != "source" and f"`{name}`" not in text]
    assert not missing
