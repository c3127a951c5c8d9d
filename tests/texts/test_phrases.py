"""Sentences as data: made by id, kept beside their English, said in any language."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict

import pytest

from dumpscope.errors import Problem, UnreadableError
from dumpscope.texts import (
    add_sentences,
    current_language,
    language_of,
    said_of,
    say,
    speaking,
    tell,
    translate,
    wished_language,
    word,
)


def test_a_sentence_is_english_text_that_keeps_its_phrase() -> None:
    text = say("readers.kept", count=1)
    assert text == "1 complete record in it was kept"
    assert say("readers.kept", count=2) == "2 complete records in it were kept"
    for same in (text, pickle.loads(pickle.dumps(text)), copy.deepcopy(text)):
        assert said_of(same) == [{"id": "readers.kept", "values": {"count": 1}}]
        assert translate(same, language="zh") == "保留了其中的 1 条完整记录"
    assert said_of("plain") is None
    assert translate("plain", language="zh") == "plain"


def test_a_list_that_holds_no_phrases_is_written_as_text() -> None:
    for axes in ([7], []):
        text = say("plots.tensor_has_no_dimensions", axes=axes)
        assert text == f"the tensor has no dimensions {axes}"
        assert said_of(text) == [{"id": "plots.tensor_has_no_dimensions", "values": {"axes": str(axes)}}]


def test_a_sentence_within_a_sentence_is_translated_with_it() -> None:
    error = UnreadableError(say("readers.holds_no_dump"), where="/x", hint=say("readers.check_disk"))
    assert str(error) == "/x: holds no dump (check the disk)"
    assert translate(str(error), language="zh") == "/x：不含 dump（请检查磁盘）"
    again = pickle.loads(pickle.dumps(error))
    assert again.body() == error.body()
    body = error.body()
    assert (body["detail"], body["hint"]) == ("/x: holds no dump", "check the disk")
    assert body["said"][0]["values"]["what"] == [{"id": "readers.holds_no_dump", "values": {}}]
    assert translate(say("api.no_node", name="n", side="golden"), language="zh") == "标杆侧中没有节点 n"


def test_a_problem_keeps_its_phrase_when_it_is_stored() -> None:
    problem = Problem(loc="a", kind="b", message=say("problem.sentence", what=say("readers.check_disk")))
    stored = Problem(**json.loads(json.dumps(asdict(problem))))
    assert stored == problem
    assert translate(stored.message, language="zh") == "请检查磁盘。"
    old = Problem(loc="a", kind="b", message="of an older version")
    assert (old.said, translate(old.message, language="zh")) == (None, "of an older version")


def test_a_name_that_is_no_utf_8_can_be_said() -> None:
    assert say("error.at", where="/\udcff", what="x") == "/\ufffd: x"


def test_the_language_belongs_to_a_block() -> None:
    assert tell("cli.interrupted") == "interrupted"
    with speaking("zh"):
        assert (current_language(), tell("cli.interrupted"), word("kind", "weight")) == ("zh", "已中断", "权重")
        assert word("kind", "of an extension") == "of an extension"
    assert tell("cli.interrupted") == "interrupted"


@pytest.mark.parametrize(
    ("option", "environment", "language"),
    [
        (None, {}, "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        (None, {"LANG": "de_DE.UTF-8"}, "en"),
        (None, {"LANG": "zh_CN.UTF-8", "DUMPSCOPE_LANG": "en"}, "en"),
        ("zh", {"DUMPSCOPE_LANG": "en"}, "zh"),
    ],
)
def test_the_command_line_finds_its_language(option: str | None, environment: dict[str, str], language: str) -> None:
    assert wished_language(option, environment) == language
    assert language_of(None, "") == "en"


def test_an_extension_brings_sentences_of_its_own() -> None:
    add_sentences("en", {"mine.found": "{name} is mine."})
    assert say("mine.found", name="x") == "x is mine."
    assert translate(say("mine.found", name="x"), language="zh") == "x is mine."
    with pytest.raises(ValueError, match="dumpscope's own"):
        add_sentences("en", {"cli.interrupted": "stop"})
