"""The arithmetics of tensor cores: in which order, and how rounded, the products of a multiplication are added up.

The PTX manual leaves that open (9.7.14.5.14). A kernel has one of them (`Form.numerics`); how generated code does it
stands in `lower/tensor/arithmetic.py`, the plain way in `oracle/tensor.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

FAST, HARDWARE = "fast", "hardware"
NUMERICS: Mapping[str, str] = {
    FAST: "products are added to C one after the other, k ascending, each sum rounded to nearest even in f32, and the"
    " last one once more where D is of f16",
    HARDWARE: "as an H200's tensor cores do it, to the bit (`summation.py`)",
}
"""What each does with multiplicands of f16, bf16, tf32 and 8-bit floats. Whole numbers are exact, and f64 is a chain of
`fma`, in both."""
