"""A causal rule of an installed package names an origin, on the command line and on the server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dumpscope import extensions
from dumpscope.analysis.rules import registry
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.errors import DumpscopeError
from dumpscope.texts import Phrase

NODE = "Functional.softmax.1.forward"


def test_its_origin_stands_in_the_answer_of_the_command_line(extended: dict[str, str], dumps: Path) -> None:
    command = [sys.executable, "-m", "dumpscope", "compare", dumps / "target_fault", dumps / "golden", "--json"]
    ran = subprocess.run(command, env=extended, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    (origin,) = json.loads(ran.stdout)["origins"]
    assert (origin["node"], origin["kind"]) == (NODE, "known_defect")
    assert origin["evidence"].startswith("Known defect K-17 of this kernel. output.0: ")
    assert origin["advice"] == "Install the driver that mends it."
    assert origin["confidence"] == 0.95


def test_its_origin_and_its_sentences_are_served(extended: dict[str, str], dumps: Path, tmp_path: Path) -> None:
    script = Path(__file__).parent / "served_origins.py"
    command = [sys.executable, script, tmp_path, dumps / "target_fault", dumps / "golden"]
    ran = subprocess.run(command, env=extended, capture_output=True, text=True, check=True)
    comparison, summary, listed = json.loads(ran.stdout)
    assert comparison["origin"]["kind"] == "known_defect"
    for (origin,) in (summary["origins"], listed["items"] if isinstance(listed, dict) else listed):
        assert (origin["node"], origin["kind"]) == (NODE, "known_defect")
        assert origin["evidence"].startswith("Known defect K-17")
        # What the page shows: the English text, or in Chinese the template "{zh}".
        assert origin["evidence_said"][0] == {
            "id": "own.sentence",
            "values": {"en": "Known defect K-17 of this kernel.", "zh": "该 kernel 的已知缺陷 K-17。"},
        }
        assert [one["values"]["zh"] for one in origin["advice_said"]] == ["请安装修复该缺陷的驱动。"]


class Taken(Rule):
    """Has the id of one of ours."""

    id = "O-1"
    kinds = ("computation",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        return []

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return []


@pytest.fixture
def fresh() -> Iterator[None]:
    registry.all_rules.cache_clear()
    yield
    registry.all_rules.cache_clear()


@pytest.mark.parametrize(
    ("installed", "words"), [(object(), "is not a causal rule"), (Taken, "two causal rules have the id 'O-1'")]
)
def test_what_is_no_rule_or_takes_an_id_is_refused(
    installed: object, words: str, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "load", lambda group: (installed,))
    with pytest.raises(DumpscopeError, match=words):
        registry.all_rules()
