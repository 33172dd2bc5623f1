"""Folders that `PYTHONPATH` names: a sandbox imports what is installed there, and sees nothing that lies beside it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from sandboxes import HERE, SMALL, answers, replied

from triptych.sandbox import Sandbox, view

RECORD = """\
given/__init__.py,sha256=x,12
"given/data, with a comma.txt",,
given_too.py,,
__pycache__/given_too.cpython-311.pyc,,
../../bin/given,,
/etc/passwd,,
gone/__init__.py,,
given-1.dist-info/RECORD,,
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As `pip install --target` leaves one, on the path from which this process imports."""
    files = {
        "given/__init__.py": "VALUE = 1\n",
        "given/data, with a comma.txt": "text",
        "given_too.py": "",
        "__pycache__/given_too.cpython-311.pyc": "",
        "bin/given": "",
        "given-1.dist-info/RECORD": RECORD,
    }
    for name, text in files.items():
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "packages")])
    return tmp_path / "packages"


def seen(folder: Path) -> set[str]:
    """What a sandbox may read of a folder, by names in it; `.` is all of it."""
    readable = [Path(path) for path in view.readable_paths(())]
    return {str(path.relative_to(folder)) for path in readable if path.is_relative_to(folder)}


def test_a_folder_of_packages_alone_is_seen(folder: Path) -> None:
    assert seen(folder) == {"."}
    assert str(folder) in view.import_paths()


def test_of_another_folder_what_is_installed_is_seen(folder: Path) -> None:
    (folder / "notes.txt").write_text("of somebody", "utf-8")
    assert seen(folder) == {"given", "given_too.py", "given-1.dist-info"}
    assert str(folder) in view.import_paths()


def test_a_record_that_cannot_be_read_lists_nothing(folder: Path) -> None:
    (folder / "other-1.dist-info").mkdir()
    (folder / "other-1.dist-info" / "RECORD").write_bytes(b"other/\xff,,\n")
    (folder / "more-1.dist-info" / "RECORD").mkdir(parents=True)
    assert seen(folder) == {"given", "given_too.py", "given-1.dist-info"}


def test_a_folder_without_packages_is_not_seen(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "module.py").write_text("", "utf-8")
    (tmp_path / "archive.zip").write_bytes(b"PK\5\6" + bytes(18))
    monkeypatch.chdir(folder)  # which the empty entry names, and a relative one
    entries = ["", ".", str(tmp_path / "project"), str(tmp_path / "archive.zip"), str(tmp_path / "not there")]
    monkeypatch.setattr(sys, "path", [*sys.path[:-1], *entries])
    assert not [path for path in view.readable_paths(()) if Path(path).is_relative_to(tmp_path)]
    assert not set(entries) & set(view.import_paths())


def test_a_task_imports_what_is_installed_and_reads_nothing_beside(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that any user may read: what hides them is the view alone."""
    beside, project = folder / "notes.txt", tmp_path / "project"
    project.mkdir()
    for path in (beside, project / "notes.txt", project / "module.py"):
        path.write_text("of somebody", "utf-8")
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(project)])
    monkeypatch.chdir(project)
    with Sandbox(import_from=(HERE,), preload=("hostile", "prying", "given", "given_too"), limits=SMALL) as sandbox:
        assert "files" in sandbox.layers
        assert replied(sandbox.run("prying:read_file", os.fsencode(folder / "given" / "__init__.py"))) == b"done"
        for path in (beside, project / "notes.txt", project / "module.py"):
            ways = answers(sandbox.run("prying:reach_file", os.fsencode(path)))
            assert "done" not in {error for way, error in ways.items() if way != "list its folder"}, ways
            assert beside.read_text("utf-8") == "of somebody"
        listed = json.loads(replied(sandbox.run("prying:list_folder", os.fsencode(folder))))
        assert listed == ["given", "given-1.dist-info", "given_too.py"]
        changes = answers(sandbox.run("prying:write_readable", os.fsencode(folder / "given")))
        assert "done" not in changes.values(), changes
