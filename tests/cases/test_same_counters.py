"""Case: counters depend neither on the number of workers nor on the process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import case_counters

import triptych as tt


def test_counters_do_not_depend_on_the_number_of_workers() -> None:
    texts: list[str] = []
    for workers in (1, 2, 3, 1):
        with tt.scope(workers=workers):
            texts.append(case_counters.text(case_counters.launches()))
    assert texts[0].count("\n") > 200
    assert "collatz branches.divergent" in texts[0]
    assert texts[1:] == texts[:1] * 3


def test_two_processes_count_the_same() -> None:
    """Address randomisation and the order of threads must not show."""
    command = [sys.executable, case_counters.__file__ or ""]
    runs = [subprocess.Popen([*command, workers], stdout=subprocess.PIPE, text=True) for workers in "12"]
    outputs = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    here = case_counters.text(case_counters.launches())
    assert outputs == [f"{hashlib.sha256(here.encode()).hexdigest()} {here.count(chr(10))}\n"] * 2
    assert Path(command[1]).name == "case_counters.py"
