"""Source files: as they lie beside a dump, and below a mounted root, which no name in a dump may leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dumpscope.readers.source_files import SIZE_LIMIT, SourceRoot, parse_root, read_below, recorded_file
from dumpscope_format.source_files import SOURCE_FILES, TOO_LARGE, SourceFile, file_of, is_own, written

TEXT = "import torch\n\n\ndef step(x):\n    return torch.relu(x)\n"
LINE = "return torch.relu(x)"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with two files of one name, and a file outside of it."""
    root = tmp_path / "mounted"
    for name in ("pkg/models/block.py", "old/block.py", "train.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT if "old" not in name else "# another\n" + TEXT, encoding="utf-8")
    (tmp_path / "secret.py").write_text("TOKEN = 'secret'\n", encoding="utf-8")
    return root


def below(root: Path, file: str, line: int = 5, code: str = LINE) -> str | None:
    """Path below the root of the file that was read."""
    found = read_below([parse_root(str(root))], file, line, code)
    return None if found is None else os.path.relpath(found.path, root)


def test_a_file_is_found_by_the_longest_end_of_its_path(tree: Path) -> None:
    assert below(tree, "/home/user/run7/pkg/models/block.py") == "pkg/models/block.py"
    assert below(tree, "C:\\runs\\pkg\\models\\block.py") == "pkg/models/block.py"
    assert below(tree, "/home/user/train.py") == "train.py"
    assert below(tree, "/home/user/old/block.py", 6) == "old/block.py"
    assert below(tree, "/home/user/absent.py") is None


def test_of_several_files_of_this_name_the_one_that_holds_the_line_is_read(tree: Path, tmp_path: Path) -> None:
    (tree / "block.py").write_text("# a third file\n", encoding="utf-8")
    roots = [SourceRoot(folder=str(tree)), SourceRoot(folder=str(tree / "pkg" / "models"))]
    found = read_below(roots, "/home/user/block.py", 5, LINE)
    assert found is not None
    assert found.path == str(tree / "pkg" / "models" / "block.py")
    found = read_below(roots, "/home/user/block.py", 5, "nowhere()")
    assert found is not None
    assert found.path == str(tree / "block.py")


def test_a_prefix_says_where_the_files_of_the_other_machine_are(tree: Path) -> None:
    root = parse_root(f"/train/code={tree}")
    assert root == SourceRoot(folder=str(tree), prefix=("train", "code"))
    found = read_below([root], "/train/code/old/block.py", 6, LINE)
    assert found is not None
    assert found.path == str(tree / "old" / "block.py")
    assert read_below([root], "/train/other/train.py") is None
    assert read_below([root], "/train/code") is None
    with pytest.raises(ValueError, match="="):
        parse_root(f"={tree}")


@pytest.mark.parametrize(
    "name",
    [
        "../secret.py",
        "/home/../../secret.py",
        "pkg/../../secret.py",
        "..\\secret.py",
        "pkg/models/../../../secret.py",
        "/etc/passwd",
        "",
        "/",
        "block.py\0.txt",
        "\0",
        "link.py",
        "linked/secret.py",
        "fifo.py",
        "folder.py",
        "notes.txt",
        "renamed.py",
    ],
)
def test_no_name_leads_out_of_a_root_or_to_anything_but_a_regular_python_file(
    name: str, tree: Path, tmp_path: Path
) -> None:
    (tree / "link.py").symlink_to(tmp_path / "secret.py")
    (tree / "linked").symlink_to(tmp_path)
    (tree / "notes.txt").write_text("secret", encoding="utf-8")
    (tree / "renamed.py").symlink_to(tree / "notes.txt")
    (tree / "folder.py").mkdir()
    os.mkfifo(tree / "fifo.py")
    assert below(tree, name) is None
    for prefix in ("", "/train"):
        root = parse_root(f"{prefix}={tree}" if prefix else str(tree))
        assert read_below([root], f"{prefix}/{name}", 1, "") is None


def test_a_link_inside_a_root_is_followed(tree: Path) -> None:
    (tree / "alias.py").symlink_to(tree / "train.py")
    assert below(tree, "/x/alias.py") == "train.py"


@pytest.mark.parametrize(
    "content",
    [
        b"a\0b",
        b"# -*- coding: nonsense -*-\n",
        b"\xff\xfe\xff",
        b"#" * (SIZE_LIMIT + 1),
    ],
)
def test_a_file_that_is_no_text_of_python_or_too_large_is_not_read(content: bytes, tree: Path) -> None:
    (tree / "odd.py").write_bytes(content)
    assert below(tree, "/x/odd.py") is None


def test_a_file_is_decoded_as_its_cookie_says_and_its_line_ends_are_pythons(tree: Path) -> None:
    text = "# -*- coding: gbk -*-\n# 残差\n"
    (tree / "odd.py").write_bytes(text.encode("gbk").replace(b"\n", b"\r\n"))
    found = read_below([SourceRoot(folder=str(tree))], "/x/odd.py")
    assert found is not None
    assert found.text == text


def test_a_recorded_file_is_read_back_among_others_and_damaged_lines(tmp_path: Path) -> None:
    kept = SourceFile(file="/train/model.py", text=TEXT + "# ünï\n", changed=True)
    lines = [
        written(SourceFile(file="/train/model.py.bak", text="other")),
        b'{"file": "/train/model.py", "te\n',
        b'{"file": "/train/model.py"\n',
        written(SourceFile(file="/train/huge.py", left_out=TOO_LARGE)),
        written(kept),
        b'{"file": "/train/last.py", "text": "half',
    ]
    (tmp_path / SOURCE_FILES).write_bytes(b"".join(lines))
    folder = str(tmp_path)
    assert recorded_file(folder, folder, "/train/model.py") == kept
    assert recorded_file(folder, folder, "/train/huge.py") == SourceFile(file="/train/huge.py", left_out=TOO_LARGE)
    assert recorded_file(folder, folder, "/train/last.py") is None
    assert recorded_file(folder, folder, "/train/other.py") is None
    assert recorded_file(str(tmp_path / "absent"), folder, "/train/model.py") is None


def test_a_link_out_of_the_dump_is_no_recorded_file(tmp_path: Path) -> None:
    dump, outside = tmp_path / "dump", tmp_path / "outside.jsonl"
    dump.mkdir()
    outside.write_bytes(written(SourceFile(file="/a.py", text="secret")))
    (dump / SOURCE_FILES).symlink_to(outside)
    assert recorded_file(str(dump), str(dump), "/a.py") is None


@pytest.mark.parametrize(
    ("frame", "file"),
    [
        ("File /a/b.py, line 3, in f, \n x", "/a/b.py"),
        ('File "/a/b.py", line 3, in <module>', "/a/b.py"),
        ("File /a, line 1/b.py, line 3, in f", "/a, line 1/b.py"),
        ("something else", None),
    ],
)
def test_the_file_of_a_frame_is_found(frame: str, file: str | None) -> None:
    assert file_of(frame) == file


def test_files_of_python_and_of_frameworks_are_not_the_users() -> None:
    assert is_own("/home/user/train.py")
    assert not is_own("/usr/lib/python3.11/site-packages/transformers/model.py")
    assert not is_own("/opt/torch/nn/functional.py")
