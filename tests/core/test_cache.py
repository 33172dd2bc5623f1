from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from triptych.core import cache as cache_module
from triptych.core.cache import Cache, cache, key_of
from triptych.core.errors import SettingError
from triptych.core.settings import scope, settings


def test_key_depends_on_where_parts_end() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("ab", b"c") == key_of(b"ab", "c")
    assert key_of() != key_of("")


def test_what_was_put_is_found_by_another_cache_object(tmp_path: Path) -> None:
    Cache(tmp_path, 1 << 20).put("ptx", key_of("a"), b"payload\0\xff")
    assert Cache(tmp_path, 1 << 20).get("ptx", key_of("a")) == b"payload\0\xff"
    assert Cache(tmp_path, 1 << 20).get("ptx", key_of("b")) is None
    assert Cache(tmp_path, 1 << 20).get("other", key_of("a")) is None


def test_fetch_makes_an_entry_once(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b""

    store = Cache(tmp_path, 1 << 20)
    assert store.fetch("ptx", key_of("a"), make) == b""
    assert store.fetch("ptx", key_of("a"), make) == b""
    assert made == [1]


@pytest.mark.parametrize("damage", [b"", b"triptych-cache/1\n", b"x" * 200])
def test_damaged_entry_is_removed_and_made_again(tmp_path: Path, damage: bytes) -> None:
    store, key = Cache(tmp_path, 1 << 20), key_of("a")
    store.put("ptx", key, b"right")
    store.path("ptx", key).write_bytes(damage)
    assert store.get("ptx", key) is None
    assert not store.path("ptx", key).exists()
    assert store.fetch("ptx", key, lambda: b"right") == b"right"
    assert store.get("ptx", key) == b"right"


@pytest.mark.parametrize("full", [False, True])
def test_a_folder_in_the_place_of_an_entry_is_replaced(tmp_path: Path, full: bool) -> None:
    store, key = Cache(tmp_path, 1 << 20), key_of("a")
    path = store.path("ptx", key)
    path.mkdir(parents=True)
    if full:
        (path / "file").write_bytes(b"x")
    assert store.get("ptx", key) is None
    assert not path.exists()
    assert store.fetch("ptx", key, lambda: b"right") == b"right"
    assert Cache(tmp_path, 1 << 20).get("ptx", key) == b"right"
    path.unlink()
    path.mkdir()
    store.evict()
    assert path.is_dir(), "what is no entry does not count"


def test_one_flipped_bit_is_noticed(tmp_path: Path) -> None:
    store, key = Cache(tmp_path, 1 << 20), key_of("a")
    store.put("ptx", key, bytes(1000))
    path = store.path("ptx", key)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert store.get("ptx", key) is None


def test_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    store = Cache(tmp_path, 10_000)
    keys = [key_of(str(number)) for number in range(8)]
    for age, key in enumerate(keys):
        store.put("ptx", key, bytes(1000))
        os.utime(store.path("ptx", key), (1000 + age, 1000 + age))
    assert store.get("ptx", keys[0]) is not None  # a use makes it the youngest
    store.capacity = 4000
    store.evict()
    left = [key for key in keys if store.path("ptx", key).exists()]
    assert left == [keys[0], keys[6], keys[7]]


def test_folder_stays_within_its_capacity(tmp_path: Path) -> None:
    store = Cache(tmp_path, 64_000)
    for number in range(200):
        store.put("ptx", key_of(str(number)), bytes(1000))
    total = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert total <= 64_000 * 17 // 16
    assert store.get("ptx", key_of("199")) is not None


def test_processes_share_what_is_known_of_the_folders_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Path] = []
    entries = cache_module.entries_of

    def noting(folder: Path) -> list[tuple[float, int, str]]:
        measured.append(folder)
        return entries(folder)

    monkeypatch.setattr(cache_module, "entries_of", noting)
    for number in range(10):
        Cache(tmp_path, 16 * 4096 * 8).put("ptx", key_of(str(number)), bytes(4000))  # as a process of its own
    assert len(measured) == 2  # by the first, and where a sixteenth of the capacity had been written


def test_entry_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    assert Cache(tmp_path, 100).fetch("ptx", key_of("a"), lambda: bytes(1000)) == bytes(1000)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_of_no_bytes_gives_nothing_that_is_there(tmp_path: Path) -> None:
    Cache(tmp_path, 1000).put("ptx", key_of("a"), b"kept")
    assert Cache(tmp_path, 0).fetch("ptx", key_of("a"), lambda: b"made") == b"made"
    assert Cache(tmp_path, 1000).get("ptx", key_of("a")) == b"kept"


def test_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    assert Cache(blocked / "cache", 1 << 20).fetch("ptx", key_of("a"), lambda: b"made") == b"made"


def test_many_writers_leave_whole_entries(tmp_path: Path) -> None:
    payloads = {key_of(str(number)): bytes([number]) * 50_000 for number in range(4)}

    def write(number: int) -> bool:
        store = Cache(tmp_path, 1 << 20)
        key = list(payloads)[number % 4]
        store.put("ptx", key, payloads[key])
        return store.get("ptx", key) == payloads[key]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, range(64)))
    assert not list(tmp_path.rglob(".new-*"))


def test_settings_choose_folder_and_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPTYCH_CACHE", str(tmp_path))
    monkeypatch.setenv("TRIPTYCH_CACHE_BYTES", "0x1000")
    assert (cache().folder, cache().capacity) == (tmp_path, 4096)
    with scope(cache_bytes=0):
        assert cache().capacity == 0
    monkeypatch.setenv("TRIPTYCH_CACHE_BYTES", "-1")
    with pytest.raises(SettingError, match="TRIPTYCH_CACHE_BYTES='-1': expected a whole number of 0 or more"):
        settings()
