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
