"""Budgets of the source: sizes, docstrings, sources of facts, and nothing of the place where it was written."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES, FUNCTION_LINES = 500, 60
FOLDERS = ("src", "tests", "benchmarks", "docs", "typings")
TEXT = frozenset({".py", ".pyi", ".md", ".toml", ".json", ".cu", ".ptx", ".svg", ".txt", ".sh", ""})

LONG_FILES: Mapping[str, str] = {}
"""Python files that may exceed the budget, each with the reason."""
LONG_FUNCTIONS: Mapping[str, str] = {}
"""Functions (`path::name`) that may exceed the budget, each with the reason."""

HOSTS = frozenset({"json-schema.org", "www.w3.org"})
"""Hosts that a text may name: schemas and name spaces, which nobody fetches."""
_MACHINE = re.compile(r"(?<![\w.])/(?:work|root|home|Users|mnt|workspace)/\w+")
_TICKET = re.compile(r"\b(?:issue|ticket|bug)s?\s+(?:no\.\s*)?#?\d+\b|(?<![\w&#/\"'(])#\d+\b(?!\.)", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\"'<>)`]+")


def python_files() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    """Every text that is ours, but for this file, which names what it looks for."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    found = [*(path for path in ROOT.iterdir() if path.name != "LICENSE"), *inside, *(ROOT / ".ci").iterdir()]
    return sorted(
        path for path in found if path.is_file() and path.suffix in TEXT and path.resolve() != Path(__file__).resolve()
    )


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Names and lines of a file's functions, methods and inner functions; the body alone, without its decorators."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{name_of(path)}::{node.name}", node.end_lineno - node.lineno + 1


def test_files_are_short() -> None:
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    long = {name: count for name, count in lines.items() if count > FILE_LINES}
    assert set(long) == set(LONG_FILES), long


def test_functions_are_short() -> None:
    long = {name: count for path in python_files() for name, count in functions(path) if count > FUNCTION_LINES}
    assert set(long) == set(LONG_FUNCTIONS), long


@pytest.mark.parametrize(
    ("page", "most"), [("README.md", 200), ("ARCHITECTURE.md", 260), ("CONTRIBUTING.md", 200)], ids=lambda value: value
)
def test_pages_are_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


def test_pictures_are_small() -> None:
    large = [name_of(path) for path in (ROOT / "docs").rglob("*.svg") if path.stat().st_size > 200_000]
    assert large == []


def test_every_module_has_a_docstring() -> None:
    modules = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]
    bare = [name_of(path) for path in modules if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert bare == []


def test_every_value_of_a_chip_has_a_source() -> None:
    chips = sorted((ROOT / "src/triptych/chips/data").glob("*.toml"))
    assert chips
    bare = [f"{path.stem}: {key}" for path in chips for key in _without_source(tomllib.loads(path.read_text("utf-8")))]
    assert bare == []


def _without_source(table: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Keys of facts (`{ value = …, … }`) that say no source, and of numbers that are no facts at all."""
    for key, value in table.items():
        if isinstance(value, dict):
            inner = cast("dict[str, object]", value)
            if "value" not in inner:
                yield from _without_source(inner, f"{prefix}{key}.")
            elif not str(inner.get("source", "")).strip():
                yield prefix + key
        elif isinstance(value, int | float):
            yield prefix + key


@pytest.mark.parametrize("pattern", [_MACHINE, _TICKET], ids=["a folder of one machine", "the number of a ticket"])
def test_no_text_names(pattern: re.Pattern[str]) -> None:
    found: list[str] = []
    for path in text_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = pattern.search(line)
            if match is not None and path.suffix not in (".ptx", ".cu", ".svg"):
                found.append(f"{name_of(path)}:{number}: {match[0]}")
    assert found == []


def test_no_text_names_a_host_that_is_not_known() -> None:
    found: list[str] = []
    for path in text_files():
        for match in _URL.finditer(path.read_text(encoding="utf-8")):
            if urlsplit(match[0]).hostname not in HOSTS:
                found.append(f"{name_of(path)}: {match[0]}")
    assert found == []


def test_constraints_name_no_place() -> None:
    """Packages come from wherever pip is set up to get them."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert [line for line in lines if "==" not in line or "@" in line or line.startswith("-")] == []
