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

"""


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
    return _HEAD.format(target=data["target"]) + told + table(("suite", "what did not pass", "reason"), failed)


def _share(suite: _Suite) -> str:
    return f"{suite['passed'] / (suite['passed'] + len(suite['failed'])):.0%}"
