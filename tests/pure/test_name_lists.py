"""Lists of names are read without PyYAML as PyYAML reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pure.loading import ROOT, load

parse_lists = load("calls/name_lists.py").parse_lists
SHIPPED = ROOT / "capture" / "dumpscope_capture" / "calls" / "support_wrap_ops.yaml"
TEXTS = {
    "one line": ("torch: [relu, gelu]\n", {"torch": ["relu", "gelu"]}),
    "comma at the end": ("torch: [\n  relu,\n  gelu,\n]", {"torch": ["relu", "gelu"]}),
    "dashes": ("torch:\n  - relu\n  - npu_*  # all\ntensor:\n- add\n", {"torch": ["relu", "npu_*"], "tensor": ["add"]}),
    "quotes": (
        "torch: ['*elu', \"npu_*\"]\ntensor:\n  - '__neg__'\n",
        {"torch": ["*elu", "npu_*"], "tensor": ["__neg__"]},
    ),
    "empty": ("torch: []\ntensor:\ncore: [linear]", {"torch": [], "tensor": [], "core": ["linear"]}),
    "nothing": ("# only a comment\n", {}),
    "comments between": ("# a\ntorch: [relu,  # b\n  gelu]\n", {"torch": ["relu", "gelu"]}),
}
OTHER = ("torch: 5", "torch: [1]", "- relu", "torch: {a: b}", "torch: [relu", "torch: [a]\ntorch: [b]", "torch: [[a]]")


@pytest.mark.parametrize("name", TEXTS)
def test_the_names_of_each_key_are_found(name: str) -> None:
    text, expected = TEXTS[name]
    assert parse_lists(text) == expected


@pytest.mark.parametrize("text", OTHER)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        parse_lists(text)


def test_the_shipped_list_is_in_this_form() -> None:
    found = parse_lists(SHIPPED.read_text(encoding="utf-8"))
    assert {"functional", "tensor", "torch"} <= set(found)
    assert "relu" in found["functional"]


def test_pyyaml_reads_the_same() -> None:
    yaml = pytest.importorskip("yaml")
    for text in [Path(SHIPPED).read_text(encoding="utf-8"), *(text for text, _ in TEXTS.values())]:
        read = yaml.safe_load(text) or {}
        assert {key: names or [] for key, names in read.items()} == parse_lists(text)
