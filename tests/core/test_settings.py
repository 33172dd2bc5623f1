from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest

from triptych.core.errors import SettingError, UnknownName
from triptych.core.settings import KINDS, Settings, kinds_of, scope, settings, usable_cores


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
    monkeypatch.setenv("TRIPTYCH_OPTIMISE", "never")
    wanted = Settings(
        chip="t4", workers=3, cache_folder=Path.home() / "kernels", cache_bytes=0, budget=256, optimise="never"
    )
    assert settings() == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("budget", value) for value in (-1, 0, "x", True, None)),
        *(("workers", value) for value in (0, 1.5)),
        *(("cache_folder", value) for value in ("", 3)),
        *(("target", 5), ("chip", ""), ("cache_bytes", -1), ("printf_bytes", -1), ("tensor_numerics", "exact")),
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


@dataclass(frozen=True)
class Mixed:
    """A setting of each type that there may be."""

    flag: bool = False
    ratio: float = field(default=1.0, metadata={"least": 0.5, "variable": "TRIPTYCH_SHARE"})
    count: int = field(default=4, metadata={"least": 2})
    folder: Path | None = None
    name: str | None = None


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        *(("flag", text, True) for text in ("1", "true", "ON", "Yes", True)),
        *(("flag", text, False) for text in ("0", "False", "off", "no", False)),
        *(("ratio", value, 0.5) for value in ("0.5", "5e-1", 0.5)),
        *(("ratio", 2, 2.0), ("count", "0x10", 16), ("count", 2, 2)),
        *(("folder", "a/b", Path("a/b")), ("folder", Path("c"), Path("c")), ("folder", None, None)),
        *(("name", None, None), ("name", "7", "7")),
    ],
)
def test_a_value_is_read_by_the_annotation(name: str, value: object, wanted: object) -> None:
    found = kinds_of(Mixed)[name].checked(value, "x")
    assert found == wanted
    assert type(found) is type(wanted) or isinstance(wanted, Path)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(("flag", value, "1 or 0 (true or false, on or off, yes or no)") for value in (2, 1, "maybe", None, 1.0)),
        *(("ratio", value, "a number of 0.5 or more") for value in (0.25, "x", None, True, math.nan, "inf", ())),
        *(("count", value, "a whole number of 2 or more") for value in (1, True, 2.0, "2.0", None)),
        *(("folder", value, "the path of a folder") for value in ("", 3)),
        *(("name", value, "a name") for value in ("", 3)),
    ],
)
def test_what_a_type_does_not_take(name: str, value: object, expected: str) -> None:
    with pytest.raises(SettingError) as caught:
        kinds_of(Mixed)[name].checked(value, "X=?")
    assert caught.value.message == f"X=?: expected {expected}"


def test_variables_are_named_after_settings_where_nothing_else_is_said() -> None:
    assert [kind.variable for kind in kinds_of(Mixed).values()][:3] == [
        "TRIPTYCH_FLAG",
        "TRIPTYCH_SHARE",
        "TRIPTYCH_COUNT",
    ]
    assert list(KINDS) == [one.name for one in fields(Settings)]
    assert {name: kind.variable for name, kind in KINDS.items() if name.startswith("cache")} == {
        "cache_folder": "TRIPTYCH_CACHE",
        "cache_bytes": "TRIPTYCH_CACHE_BYTES",
    }


def test_a_type_that_no_text_can_be_read_as() -> None:
    @dataclass
    class Wrong:
        names: tuple[str, ...] = ()

    with pytest.raises(TypeError, match="setting 'names'"):
        kinds_of(Wrong)
