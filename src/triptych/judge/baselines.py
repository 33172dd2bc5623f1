"""Which of our own kernels is the reference of an operator in a language: what speedups are told against."""

from __future__ import annotations

from triptych.judge.candidate import Candidate
from triptych.kernels.catalogue import kernels_of


def reference_of(operator: str, language: str) -> Candidate | None:
    """The reference kernel of an operator, as a candidate; None where there is none in the language."""
    one = next((one for one in kernels_of(operator, language) if one.reference), None)
    if one is None:
        return None
    module = f"triptych.kernels.{language}"
    return Candidate(f"from {module} import {one.function} as solution\n", f"{module}.{one.function}")
