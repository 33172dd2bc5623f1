"""The part of the page of coverage that is about AWS's public NKI samples, from `docs/data/nki_samples.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from generators.markdown import code, table

DATA = Path(__file__).resolve().parents[1] / "data" / "nki_samples.json"

_HEAD = """\
## AWS's NKI samples

`docs/record_nki_samples.py` ran the kernels of AWS's samples beside references in numpy, at the samples' own or smaller
sizes, and the tests of NKI's reference with their own comparisons, for {target}. *Passed* is right, or refused where
the test wants that. A file that does not load counts as one test. Nothing of theirs is part of this repository.

`docs/record_nki_library.py` ran the tests of AWS's library ({passed} of {all} passed, {share}) with the inputs, the
references and the bounds that they bring. Of each test function that compares a kernel with a reference it takes the
case with the least product of whole-number parameters, for {target}, or for trn3 where only that has one. Left out are
cases that are to be refused, and the long lists of models' shapes (`*_model_config.py`).
Ten of the library's files that cannot run as they were published are mended first (`REPAIRS`). The cases ran on 16
cores, with 400 s each; two again, after an error of triptych's that one showed, and with more time.

"""
_LIBRARY = "nki-library "


class _Failure(TypedDict):
    error: str
    reason: str


class _Suite(TypedDict):
    source: str
    passed: int
    failed: Mapping[str, _Failure]


class _Data(TypedDict):
    target: str
    suites: Mapping[str, _Suite]


def section() -> str:
    """The section's Markdown."""
    data: _Data = json.loads(DATA.read_text(encoding="utf-8"))
    suites = data["suites"]
    rows = [
        (name, one["source"], str(one["passed"]), str(one["passed"] + len(one["failed"])), _share(one))
        for name, one in suites.items()
    ]
    failed = [(suite, code(name), one["reason"]) for suite, of in suites.items() for name, one in of["failed"].items()]
    told = table(("suite", "source", "passed", "of", ""), rows)
    library = [one for name, one in suites.items() if name.startswith(_LIBRARY)]
    passed = sum(one["passed"] for one in library)
    count = passed + sum(len(one["failed"]) for one in library)
    head = _HEAD.format(target=data["target"], passed=passed, all=count, share=f"{passed / max(count, 1):.0%}")
    return head + told + table(("suite", "what did not pass", "reason"), failed)


def _share(suite: _Suite) -> str:
    return f"{suite['passed'] / (suite['passed'] + len(suite['failed'])):.0%}"
