"""The same models and seeds give msprobe 26.2.0's nodes, order, items and numbers, with the differences that
docs/capture.md lists.

peer_dumps.json.xz holds what msprobe recorded of peer_models.py on torch 2.13: names, order, items, shapes, dtypes, and numbers
to 8 digits, which another processor computes with other roundings. Hashes are the same on one machine only: for these same
cases test_conformance.py runs msprobe itself beside us.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import peer_models
from capture.differences import OTHER_MACHINE, REMAINDERS, check_step, hashes_in

STORED = Path(__file__).with_name("peer_dumps.json.xz")


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return stored_cases()


def stored_cases() -> dict[str, Any]:
    """What msprobe recorded, by MODEL-LEVEL-RISK-STEP."""
    return dict(json.loads(lzma.decompress(STORED.read_bytes())))


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the stored numbers are those of torch 2.13")
@pytest.mark.parametrize("case", sorted(stored_cases()))
def test_nodes_order_items_and_numbers_are_msprobes(make: Any, read: Any, stored: dict[str, Any], case: str) -> None:
    name, level, risk, step = case.split("-")
    debugger = make(level=level, risk_level=risk, backward="msprobe", numbering="msprobe")
    peer_models.train(name, debugger, int(step) + 1)
    check_step(name, risk, read(int(step)), stored[case], REMAINDERS if name == "arithmetic" else OTHER_MACHINE)


def test_what_is_stored_holds_nothing_that_a_processor_changes(stored: dict[str, Any]) -> None:
    assert [case for case, peer in stored.items() if list(hashes_in(peer["data"]))] == []
