"""Random kernels by the million instructions: `python tests/random_kernels/campaign.py --instructions 10000000`.

Instructions are counted as threads execute them: those of warps times the lanes that reach them. Each kernel runs in a
child process. Of a mismatch the smallest failing kernel is written to a file; kernels that fail for a reason that was
seen before are counted alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu_table"))

from child import Child, Crash
from compare import Agreement, Mismatch, run_and_compare
from emit import random_kernel, text_of
from grammar import RandomKernel
from minimise import minimise

from triptych.core.settings import scope
from triptych.gpu.isa import TABLE, Row, find_form

_PLACES = {id(row): place for place, row in enumerate(TABLE)}


def attempt(given: tuple[RandomKernel, str]) -> Agreement | tuple[str, str]:
    """Runs one kernel in the child; gives the kind of a mismatch and what it says. The cache is a folder's."""
    kernel, folder = given
    try:
        with scope(cache_folder=folder):
            return run_and_compare(kernel)
    except Mismatch as mismatch:
        return mismatch.kind, str(mismatch)
    except Exception as error:
        return f"{type(error).__name__}", str(error)


Runner = Child[tuple[RandomKernel, str], Agreement | tuple[str, str]]


def _kind_of(found: tuple[str, str] | Crash) -> tuple[str, str]:
    return (f"crash: {found.reason}", found.reason) if isinstance(found, Crash) else found


@dataclass(slots=True)
class Totals:
    """What a campaign has done so far."""

    kernels: int = 0
    warps: int = 0
    threads: int = 0
    rows: set[int] = field(default_factory=set[int])
    """The places in the table of the rows that were executed."""
    mismatches: Counter[str] = field(default_factory=Counter[str])

    def add(self, kernel: RandomKernel, agreement: Agreement) -> None:
        """A kernel on which both executors agree."""
        self.warps += agreement.warps
        self.threads += agreement.threads
        self.rows |= {_PLACES[id(row)] for row in rows_of(text_of(kernel), agreement.lines)}

    def say(self, started: float) -> str:
        """The figures."""
        known = {row.mnemonic for row in TABLE}
        mnemonics = {TABLE[place].mnemonic for place in self.rows}
        return (
            f"{self.kernels} kernels, {self.threads} instructions of threads ({self.warps} of warps) in"
            f" {time.monotonic() - started:.0f} s; {len(mnemonics)} of {len(known)} mnemonics and"
            f" {len(self.rows)} of {len(TABLE)} rows executed; {sum(self.mismatches.values())} mismatches"
        )


def rows_of(text: str, ran: frozenset[int]) -> Iterator[Row]:
    """The rows of the lines that were executed."""
    number = 0
    for line in text.splitlines():
        if line.startswith(".loc"):
            number = int(line.split()[2])
        elif number in ran:
            words = [word for word in line.split() if not word.startswith("@")]
            mnemonic, *modifiers = (words or [""])[0].rstrip(";").split(".")
            form = find_form(mnemonic, tuple(modifiers))
            if form is not None:
                yield form.row


def _minimised(kernel: RandomKernel, kind: str, child: Runner, folder: str, seconds: float) -> RandomKernel:
    end = time.monotonic() + seconds

    def fails(smaller: RandomKernel) -> bool:
        if time.monotonic() > end:
            return False
        found = child.call((smaller, folder))
        return (isinstance(found, tuple) and found[0] == kind) or (
            isinstance(found, Crash) and kind.startswith("crash")
        )

    return minimise(kernel, fails)


def run_campaign(instructions: int, seed: int, failures: Path, seconds: float, minimise_s: float) -> Totals:
    """Kernels of ascending seeds until so many instructions have run, or the time is over."""
    totals, started = Totals(), time.monotonic()
    child: Runner = Child(attempt)
    with tempfile.TemporaryDirectory() as folder:
        while totals.threads < instructions and time.monotonic() - started < seconds:
            kernel = random_kernel(seed + totals.kernels)
            totals.kernels += 1
            found = child.call((kernel, folder))
            if isinstance(found, Agreement):
                totals.add(kernel, found)
            else:
                kind, text = _kind_of(found)
                totals.mismatches[kind] += 1
                print(f"seed {kernel.seed}: {kind}: {text[:600]}", flush=True)
                if totals.mismatches[kind] == 1:
                    smaller = _minimised(kernel, kind, child, folder, minimise_s)
                    failures.mkdir(parents=True, exist_ok=True)
                    path = failures / f"seed{kernel.seed}.ptx"
                    path.write_text(f"// {kind}\n// grid {kernel.grid}, block {kernel.block}\n{text_of(smaller)}\n")
                    print(f"  written to {path}", flush=True)
            if totals.kernels % 10 == 0:
                print(totals.say(started), flush=True)
        child.close()
    print(totals.say(started))
    for kind, count in totals.mismatches.most_common():
        print(f"  {count} × {kind}")
    return totals


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=10_000_000, help="instructions of threads to run")
    parser.add_argument("--seed", type=int, default=0, help="of the first kernel")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop, whatever has run")
    parser.add_argument("--minimise-seconds", type=float, default=300, help="for each new kind of mismatch")
    parser.add_argument(
        "--failures", type=Path, default=Path(tempfile.gettempdir(), "random-kernels"), help="folder of what fails"
    )
    given = parser.parse_args()
    totals = run_campaign(given.instructions, given.seed, given.failures, given.seconds, given.minimise_seconds)
    return 1 if totals.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
