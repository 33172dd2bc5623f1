"""A script under `run_script` sees and does what it would under Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import script

from triptych.cli.script import run_script
from triptych.core.errors import UsageError

PROBE = (
    "import os, sys",
    "print(__name__, __file__, sys.argv, os.path.realpath(sys.path[0]))",
    "print(sys.modules['__main__'].__dict__ is globals(), __doc__, __spec__)",
    "import neighbour",
    "print(neighbour.VALUE)",
)


def test_it_looks_like_python(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script(tmp_path, "VALUE = 7", name="neighbour.py")
    path = script(tmp_path, *PROBE)
    arguments = ["--json", "x", "-h", "--", "-"]
    status = run_script(path, arguments).status
    ours = capfd.readouterr().out
    theirs = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, check=True).stdout
    assert status == 0
    assert ours == theirs
    sys.modules.pop("neighbour")


def test_everything_is_put_back(tmp_path: Path) -> None:
    before = sys.argv, list(sys.path), sys.modules["__main__"], sys.excepthook
    run_script(script(tmp_path, "import sys", "sys.path.append('x')", "sys.excepthook = None"), ["a"])
    assert (sys.argv, list(sys.path), sys.modules["__main__"], sys.excepthook) == before


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("pass", 0, ""),
        ("raise SystemExit", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit(True)", 1, ""),
        ("sys.exit(-1)", 255, ""),
        ("sys.exit('no luck')", 1, "no luck\n"),
        ("sys.exit([1])", 1, "[1]\n"),
    ],
)
def test_exit_status(line: str, status: int, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = script(tmp_path, "import sys", line)
    assert run_script(path, []).status == status
    assert capfd.readouterr().err == message
    theirs = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert (theirs.returncode, theirs.stderr) == (status, message)


@pytest.mark.parametrize(
    "lines",
    [
        ("def f():", "    return 1 / 0", "f()"),
        ("try:", "    1 / 0", "except ZeroDivisionError as e:", "    raise ValueError('x') from e"),
        ("try:", "    1 / 0", "except ZeroDivisionError:", "    {}['x']"),
        ("def f(:",),
        ("import json", "json.loads('{')"),
        ("raise ExceptionGroup('several', [ValueError('a'), KeyError('b')])",),
        ("import nothing_of_that_name",),
    ],
)
def test_a_traceback_is_pythons_own(lines: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = script(tmp_path, *lines)
    assert run_script(path, []).status == 1
    ours = capfd.readouterr().err
    theirs = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False).stderr
    assert ours == theirs


def test_frames_of_triptych_are_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = script(tmp_path, "import triptych.chips", "triptych.chips.load('h101')")
    assert run_script(path, []).status == 1
    error = capfd.readouterr().err
    assert error.startswith("Traceback (most recent call last):\n")
    assert f'File "{path}", line 2' in error
    assert "UnknownName: unknown chip 'h101'" in error
    assert "catalogue.py" not in error


def test_a_scripts_own_excepthook_is_used(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hook = "sys.excepthook = lambda kind, error, trace: print('hooked', kind.__name__, trace.tb_lineno)"
    assert run_script(script(tmp_path, "import sys", hook, "1 / 0"), []).status == 1
    captured = capfd.readouterr()
    assert captured.out == "hooked ZeroDivisionError 3\n"
    assert captured.err == ""


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the script"):
        run_script(str(tmp_path / "none.py"), [])


def test_an_encoding_declaration_is_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nprint(len('é'))\n".encode("latin-1"))
    assert run_script(str(path), []).status == 0
    assert capfd.readouterr().out == "1\n"


@pytest.mark.parametrize("number", [10**30, -(10**30), 2**63 - 1, -(2**63), 2**32 + 3])
def test_numbers_that_exit_cannot_take(number: int, tmp_path: Path) -> None:
    path = script(tmp_path, "import sys", f"sys.exit({number})")
    theirs = subprocess.run([sys.executable, path], check=False).returncode
    assert run_script(path, []).status == theirs


def test_its_file_is_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script(tmp_path, "import os, sys", "os.chdir('/')", "print(__file__, sys.argv)", "open(__file__).close()", "1 / 0")
    monkeypatch.chdir(tmp_path)
    assert run_script("./script.py", []).status == 1
    ours = capfd.readouterr()
    theirs = subprocess.run([sys.executable, "./script.py"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ours.out, ours.err) == (theirs.stdout, theirs.stderr)
