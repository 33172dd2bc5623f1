from __future__ import annotations

import subprocess
import sys

import pytest

import triptych
from triptych.core import errors

HEAVY = ("numpy", "triton", "torch", "llvmlite", "rich", "typer", "ml_dtypes")


def test_importing_triptych_imports_nothing_heavy() -> None:
    code = f"import sys, triptych; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_arrays_and_profiles_need_no_compiler() -> None:
    code = (
        "import sys, triptych; triptych.zeros(3); triptych.profile; "
        "print([name for name in ('triton', 'torch', 'llvmlite') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", triptych.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(triptych, name)
    assert value.__doc__
    assert name in dir(triptych)


def test_every_error_of_the_catalogue_is_public() -> None:
    catalogue = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    kinds = {name: kind for name, kind in catalogue.items() if issubclass(kind, errors.TriptychError)}
    assert len(kinds) > 20
    for name, kind in kinds.items():
        assert name in triptych.__all__, name
        assert getattr(triptych, name) is kind


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'triptych' has no attribute 'cudaa'"):
        getattr(triptych, "cudaa")  # noqa: B009
