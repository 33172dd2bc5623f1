"""Every code block of the documentation runs, and prints what the page says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from blocks import PAGES, ROOT, blocks_of, commands_of, expected_prints, matches, run, script_of

RUN = ("python", "console")


def _with(kind: str) -> list[Path]:
    return [page for page in PAGES if any(block.kind == kind for block in blocks_of(page))]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    silent = [block.line for block in blocks_of(page) if block.kind not in RUN and not block.excused]
    assert silent == [], "put `<!-- not run: … -->` above the fence"


@pytest.mark.parametrize("page", _with("python"), ids=_name)
def test_python(page: Path, tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(page) if block.kind == "python" and block.file is None]
    script = tmp_path / "page.py"  # a file, since Triton reads the source of its kernels
    script.write_text(script_of(blocks), encoding="utf-8")
    done = run([sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, done.stdout
    expected = [line for block in blocks for line in expected_prints(block)]
    assert matches(expected, done.stdout.splitlines()), done.stdout


@pytest.mark.parametrize("page", _with("console"), ids=_name)
def test_console(page: Path, tmp_path: Path) -> None:
    wrong: list[str] = []
    unused: set[str] = set()
    for block in blocks_of(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            unused.add(block.file)
        for command in commands_of(block) if block.kind == "console" else ():
            unused = {name for name in unused if name not in command.command}
            done = run(["bash", "-c", command.command], tmp_path)
            printed = done.stdout.splitlines()
            if done.returncode != command.status or not matches(command.output, printed):
                wrong.append(f"{page.name}:{command.line}: exit status {done.returncode}\n{done.stdout}")
    assert wrong == []
    assert unused == set(), "a block that is a file is run by a console block below it"
