"""The reduction registers of the Vector and the Scalar engine, one float32 a lane: what `reduce_cmd` does with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.alu import ALU
from triptych.neuron.isa.arithmetic import reduce_in_order
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.row import Attributes, Check, Subject, Values

IDENTITIES: Mapping[str, float] = {
    "add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf,
    "abs_max": 0.0, "abs_min": np.inf,
}  # fmt: skip
"""What the registers are reset to. Source: nki.isa.tensor_scalar_reduce and tensor_scalar_cumulative of NKI 0.6."""
COMMANDS = ("idle", "reset", "reduce", "reset_reduce", "load_reduce")
KEEPS = frozenset({"reduce"})
"""Commands that go on from what the registers hold."""
REDUCES = frozenset({"reduce", "reset_reduce", "load_reduce"})


def reduction(operands: Values, attributes: Attributes, values: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """`reduce_res` and the registers after an instruction whose results are `values` [P, N], reduced in order."""
    command, name = str(attributes["reduce_cmd"]), str(attributes["reduce_op"])
    if command == "idle":
        return {"reduce_res": _held(operands, values)}
    if command == "reset":
        held = np.full((values.shape[0], 1), IDENTITIES[name], np.float32)
        return {"reduce_res": held, "registers": held}
    result = _reduced(operands, command, name, values)
    return {"reduce_res": result, "registers": result}


def _held(operands: Values, values: NDArray[np.float32]) -> NDArray[np.float32]:
    if "registers" in operands:
        return widen(operands.flat("registers"))
    return np.full((values.shape[0], 1), np.nan, np.float32)


def _reduced(operands: Values, command: str, name: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
    if name in ("abs_max", "abs_min"):
        values = np.abs(values)
    rows = reduce_in_order(name, values)[:, np.newaxis]
    if command == "reset_reduce":
        return rows
    start = operands.flat("registers") if command == "reduce" else operands.flat("reduce_init")
    first = np.broadcast_to(widen(start).reshape(-1, 1), rows.shape)
    if name in ("add", "multiply"):
        return reduce_in_order(name, np.concatenate([first, values], axis=1))[:, np.newaxis]
    return ALU[name].meaning(first, rows)


def command(*allowed: str) -> Check:
    """The attribute `reduce_cmd` is one that the instruction has, with the operands that it needs."""

    def check(subject: Subject) -> None:
        name = str(subject.instruction.attributes["reduce_cmd"])
        if name not in allowed:
            raise subject.refuse(f"reduce_cmd is '{name}'; the instruction has {', '.join(allowed)}")
        operands = subject.instruction.operands
        if name == "load_reduce" and "reduce_init" not in operands:
            raise subject.refuse("reduce_cmd is 'load_reduce', which needs a value to start from (reduce_init)")
        if name != "load_reduce" and operands.get("reduce_init") not in (None, 0.0):
            raise subject.refuse(f"reduce_init is given, which reduce_cmd '{name}' does not load", "use load_reduce")
        if name == "idle" and "reduce_res" in operands:
            raise subject.refuse(
                "reduce_res is given, and reduce_cmd is 'idle': nothing is reduced", "use reset_reduce"
            )

    return check
