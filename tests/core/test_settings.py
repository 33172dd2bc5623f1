from __future__ import annotations

from pathlib import Path

import pytest

from triptych.core.errors import SettingError, UnknownName
from triptych.core.settings import Settings, scope, settings, usable_cores


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHIP", "TARGET", "WORKERS", "CACHE", "CACHE_BYTES", "BUDGET"):
        monkeypatch.delenv(f"TRIPTYCH_{name}", raising=False)
    found = settings()
    assert (found.chip, found.target, found.workers) == (None, None, usable_cores())
    assert found.cache_folder == Path.home() / ".cache/triptych"


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPTYCH_CHIP", "t4")
    monkeypatch.setenv("TRIPTYCH_WORKERS", "3")
    monkeypatch.setenv("TRIPTYCH_CACHE", "~/kernels")
    monkeypatch.setenv("TRIPTYCH_CACHE_BYTES", "0")
    monkeypatch.setenv("TRIPTYCH_BUDGET", "0x100")
    monkeypatch.setenv("TRIPTYCH_TARGET", "")
    wanted = Settings(chip="t4", workers=3, cache_folder=Path.home() / "kernels", cache_bytes=0, budget=256)
    assert settings() == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("budget", value) for value in (-1, 0, "x")),
        *(("workers", value) for value in (0, 1.5)),
        *(("cache_folder", value) for value in ("", 3)),
        *(("target", 5), ("chip", ""), ("cache_bytes", -1), ("printf_bytes", -1)),
    ],
)
def test_scope_refuses_what_a_variable_would(name: str, value: object) -> None:
    before = settings()
    with pytest.raises(SettingError, match=f"{name}={value!r}: expected"), scope(**{name: value}):
        pass
    assert settings() == before


@pytest.mark.parametrize("value", [1 << 63, 1 << 64, "0x8000000000000000"])
def test_whole_numbers_fit_63_bits(value: int | str) -> None:
    with pytest.raises(SettingError, match=r"expected a whole number of 1 or more, below 2\*\*63"), scope(budget=value):
        pass
    with scope(budget=(1 << 63) - 1) as inner:
        assert inner.budget == (1 << 63) - 1


def test_scope_names_the_nearest_setting() -> None:
    with pytest.raises(UnknownName, match="unknown setting 'budgt'") as caught, scope(budgt=1):
        pass
    assert caught.value.hint == "did you mean budget?"


def test_scope_holds_inside_and_is_undone() -> None:
    before = settings()
    with scope(budget=7, cache_folder="~/x") as inner:
        assert settings() is inner
        assert (inner.budget, inner.cache_folder) == (7, Path.home() / "x")
    assert settings() == before


@pytest.mark.parametrize("folder", ["~nobody-of-that-name", "~nobody-of-that-name/x"])
def test_a_home_directory_that_there_is_not(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(SettingError, match="there is no home directory of ~nobody-of-that-name"),
        scope(cache_folder=folder),
    ):
        pass
    monkeypatch.setenv("TRIPTYCH_CACHE", folder)
    with pytest.raises(SettingError, match=f"TRIPTYCH_CACHE='{folder}': there is no home directory"):
        settings()
