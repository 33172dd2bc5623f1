"""`activate()` and `deactivate()`: what `import nki` finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from triptych.core.errors import UsageError
from triptych.languages import nki as frontend

MODULES = ("nki", "nki.language", "nki.isa", "neuronxcc", "neuronxcc.nki", "neuronxcc.nki.language")

SCRIPT = """
import numpy as np
from triptych.languages import nki as frontend
try:
    import nki
except ImportError:
    pass
else:
    raise SystemExit("nki was there before activate()")
frontend.activate()
import nki
import nki.language as nl
import nki.isa as nisa
from nki.language import add
import neuronxcc.nki as beta1
import neuronxcc.nki.language as beta1_language
from neuronxcc import nki as same
from neuronxcc.nki.language import par_dim
import neuronxcc.nki.isa, nki.typing
assert beta1 is same and beta1 is not nki and beta1_language is nl

@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, add(nl.load(a), nl.load(a)))
    return out

assert (double(np.ones((4, 4), np.float32)) == 2).all()
frontend.deactivate()
try:
    import nki
except ImportError:
    print("done")
"""


def test_imports_in_a_fresh_process() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


def test_activation_can_be_repeated_and_undone() -> None:
    before = {name: sys.modules.get(name) for name in MODULES}
    frontend.activate()
    frontend.activate()
    assert sys.modules["nki.language"] is frontend.language
    frontend.deactivate()
    frontend.deactivate()
    assert {name: sys.modules.get(name) for name in MODULES} == before


def test_an_installed_package_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "nki"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert not frontend.installed()  # an empty placeholder
    (package / "language.py").write_text("")
    assert frontend.installed()
    with pytest.raises(UsageError, match="is installed, and is left alone"):
        frontend.activate()
    frontend.activate(force=True)
    assert sys.modules["nki"] is frontend.nki
    frontend.deactivate()
    assert "nki" not in sys.modules


def test_modules_work_without_activation() -> None:
    nl = frontend.language

    @frontend.nki.jit
    def kernel(a: frontend.language.NkiTensor) -> frontend.language.NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.relu(nl.load(a)))
        return out

    a = np.array([[1.0, -1.0]], np.float32)
    assert np.array_equal(kernel(a), np.array([[1.0, 0.0]]))
