"""The page of operators, from their declarations."""

from __future__ import annotations

from generators.markdown import code, table
from triptych.operators import OPERATORS, Operator, Parameter, Size
from triptych.operators.power import ANY
from triptych.report.operators import formulas, intensity
from triptych.report.quantities import count, ratio, size

_HEAD = """\
# Operators

What a kernel must compute, said once. `triptych operators NAME` prints the same, and the power of the error budget. A
kernel takes the inputs in their order, then the outputs; a host side may see every integer of a size. T is the element
type that a case has, |T| its bytes.

```python
import numpy as np
import triptych as tt
from triptych.kernels import cuda

softmax = tt.operators.operator("softmax")
one = tt.operators.case(softmax, "tiny", "f32", "normal", seed=1)  # inputs, what must come out, how exactly
y = cuda.softmax(*one.inputs.values())
print(one.error((y,)) <= 1, one.error((np.zeros_like(y),)) <= 1)  # True False
size = softmax.size("llama_3_vocabulary").values
print(softmax.least_flops(size), softmax.least_bytes(size, one.dtype))  # 1050671104 2101346304
```

A result is judged element by element: its distance from the float64 reference of the very inputs, as a multiple of the
**budget**. A budget counts roundings: of f32 where sums are summed up (in any order; of n terms
min(n, max(8 √n, n / 8)) roundings count, as those of long sums do not all have one sign), of T where a result is
stored. NaN and infinities must stand where the reference has them; beyond T's largest number an infinity is right too.

A budget must have **power**: at the first size, results of f32 arithmetic must stay within it in every distribution,
and each wrong variant must exceed it in one. Beside the operator's own, these are tried on every operator: {any}.

**Least work** is a lower bound for every kernel and all distributions: each byte once, FLOPs as the definition has them
(an addition, a product, a quotient, a root or a transcendental function is one, a comparison none).

"""


def page() -> str:
    """The page's Markdown."""
    rows = [
        (f"[{one.name}](#{one.name})", one.computes, ", ".join(one.dtypes), ", ".join(each.name for each in one.sizes))
        for one in OPERATORS.values()
    ]
    overview = table(("operator", "computes", "T", "sizes"), rows)
    head = _HEAD.replace("{any}", ", ".join(one.name for one in ANY))
    return f"{head}{overview}{''.join(map(_section, OPERATORS.values())).rstrip()}\n"


def _section(operator: Operator) -> str:
    arguments = [_argument("in", one) for one in operator.inputs] + [_argument("out", one) for one in operator.outputs]
    constants = "".join(f"{code(name)} is {value:g}. " for name, value in operator.constants.items())
    parts = [
        f"## {operator.name}\n\n{operator.computes}. {constants}".rstrip() + "\n\n",
        table(("", "name", "type", "axes", "meaning"), arguments),
        f"Least work: {'; '.join(map(str, formulas(operator)))}.\n\n",
        table(
            ("size", "values", "FLOPs", "bytes", "FLOP/byte", "source"), [_size(operator, s) for s in operator.sizes]
        ),
        f"Inputs: {'; '.join(f'**{one.name}**: {one.meaning}' for one in operator.distributions)}.\n\n",
        f"Budget: {operator.derivation}.\n\n",
        f"Wrong: {'; '.join(one.name for one in operator.wrong)}.\n\n",
    ]
    return "".join(parts)


def _argument(kind: str, one: Parameter) -> tuple[str, ...]:
    return kind, code(one.name), one.dtype, code(f"({', '.join(one.axes.split())})"), one.meaning


def _size(operator: Operator, one: Size) -> tuple[str, ...]:
    first = operator.dtype(operator.dtypes[0])
    values = ", ".join(f"{name} {value}" for name, value in one.values.items())
    flops, moved = operator.least_flops(one.values), operator.least_bytes(one.values, first)
    return (
        one.name,
        values,
        count(flops),
        f"{size(moved)} ({first})",
        ratio(intensity(operator, one, first)),
        one.source,
    )
