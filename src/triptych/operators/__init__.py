"""What kernels must compute: operators, each said once, with its reference, its error budget and its least work.

`OPERATORS` has them by name, `operator(name)` gives one, `case(operator, size, dtype, distribution, seed)` inputs and
what must come out; `Case.verdict(outputs)` says whether results are right, and which element is the worst.
"""

from triptych.operators.case import Case, case, draw_inputs, of_inputs
from triptych.operators.catalogue import OPERATORS, operator
from triptych.operators.operator import Distribution, Operator, Parameter, Size, Wrong
from triptych.operators.power import Proof
from triptych.operators.verdict import Verdict

__all__ = [
    "OPERATORS",
    "Case",
    "Distribution",
    "Operator",
    "Parameter",
    "Proof",
    "Size",
    "Verdict",
    "Wrong",
    "case",
    "draw_inputs",
    "of_inputs",
    "operator",
]
