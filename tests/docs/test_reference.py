"""The pages of the reference are what the tables and docstrings say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import generate
import triptych as tt
from generators import counters
from triptych.core.counter_table import COUNTER_ROWS

DOCS = Path(generate.__file__).parent
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")

CUDA = 'extern "C" __global__ void shift(float *x) { x[threadIdx.x] += 1.0f; }'


@pytest.mark.parametrize("name", generate.TEXTS)
def test_pages_are_up_to_date(name: str) -> None:
    page = DOCS / name
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    assert written == generate.TEXTS[name](), "run python docs/generate.py"


@pytest.mark.parametrize("page", [*DOCS.parent.glob("*.md"), *DOCS.rglob("*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets: list[str] = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    lost = [target for target in targets if ":" not in target and not (page.parent / target).exists()]
    assert lost == []


def test_modelled_numbers_are_documented() -> None:
    kernel = tt.cuda.compile(CUDA)["shift"]
    with tt.profile(chip="h100") as profile:
        kernel[1, 32](np.zeros(32, np.float32))
    documented = {name: row for row in COUNTER_ROWS if row.machine == "model" for name in counters.names_of(row)}
    roofs = documented.pop("roof.<name>")
    for name, one in profile.launches[0].roofline.counters().items():
        row = roofs if name.startswith("roof.") else documented[name]
        assert (one.unit, one.provenance) == (row.unit, tt.Provenance.MODELLED), name
