"""The name of our own sources, under which compiled kernels are kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import triptych as tt
from triptych.core.cache import cache
from triptych.native import cache_digest
from triptych.native.cache_digest import sources_digest

FOLDERS = ("core", "gpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache, in which the digest of files that were changed just now is kept too."""
    monkeypatch.setattr(cache_digest, "SETTLED_NS", 0)
    with tt.scope(cache_folder=tmp_path / "cache"):
        yield


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    for file, text in {"core/a.py": "1", "gpu/b.py": "2", "gpu/deep/c.py": "3", "gpu/notes.txt": "4"}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder


def kept() -> list[Path]:
    return sorted(cache().folder.glob("sources/*/*"))


def test_contents_and_paths_within_the_package_count(package: Path) -> None:
    digests = [sources_digest(package, FOLDERS)]
    (package / "gpu/deep/c.py").write_text("33")
    digests.append(sources_digest(package, FOLDERS))
    (package / "gpu/deep/c.py").rename(package / "gpu/deep/d.py")
    digests.append(sources_digest(package, FOLDERS))
    (package / "core/new.py").write_text("")
    digests.append(sources_digest(package, FOLDERS))
    (package / "core/new.py").unlink()
    assert sources_digest(package, FOLDERS) == digests[2]
    (package / "gpu/notes.txt").write_text("no code")
    assert sources_digest(package, FOLDERS) == digests[2]
    assert len(set(digests)) == 4


def test_edit_of_the_same_size_and_time_counts(package: Path) -> None:
    file = package / "gpu/b.py"
    status = file.stat()
    before = sources_digest(package, FOLDERS)
    file.write_text("5")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert sources_digest(package, FOLDERS) != before


def test_copy_elsewhere_has_the_same_name_but_an_entry_of_its_own(package: Path, tmp_path: Path) -> None:
    before = sources_digest(package, FOLDERS)
    shutil.copytree(package, tmp_path / "copy")  # with the same times
    assert sources_digest(tmp_path / "copy", FOLDERS) == before
    assert len(kept()) == 2


def test_unchanged_files_are_not_read_again(package: Path) -> None:
    right = sources_digest(package, FOLDERS)
    (entry,) = kept()
    cache().put("sources", entry.name, b"what was kept")
    assert sources_digest(package, FOLDERS) == "what was kept"
    entry.write_bytes(b"damaged")
    assert sources_digest(package, FOLDERS) == right
    assert kept() == [entry]


def test_files_changed_an_instant_ago_are_read_each_time(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_digest, "SETTLED_NS", 3600 * 10**9)
    digest = sources_digest(package, FOLDERS)
    assert kept() == []
    monkeypatch.setattr(cache_digest, "SETTLED_NS", 0)
    assert sources_digest(package, FOLDERS) == digest
    assert len(kept()) == 1
