"""Runs a launch on the generated code and on the oracle, and compares what they leave behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.counter_table import COUNTER_ROW
from triptych.core.counters import Counters
from triptych.core.dtypes import dtype_of
from triptych.core.handles import AddressSpace, Handle, Storage, contiguous_strides
from triptych.core.output import redirecting
from triptych.core.plan import Argument, Launch, Program, Scalar, Struct
from triptych.gpu import run_launch
from triptych.gpu.oracle import run_launch_slowly

Array = NDArray[Any]
Given = Array | np.generic | bytes | Argument
Memory = dict[Storage, NDArray[np.uint8]]
Grid = tuple[int, ...]

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
NOT_COMPARED = ("threads.active_lanes",)
"""Derived from the counters that are compared."""
FILE = "kernel.ptx"
"""What the lines of PTX are called that names no source itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What both executors agree on: the arrays after the launch, in the order of the arguments, and the counters."""

    arrays: tuple[Array, ...]
    counters: Mapping[str, int]
    text: str = ""
    """What was printed."""


def three(extents: Grid | int) -> tuple[int, int, int]:
    """Extents of three axes."""
    given = (extents,) if isinstance(extents, int) else extents
    return (*given, 1, 1, 1)[0], (*given, 1, 1, 1)[1], (*given, 1, 1, 1)[2]


def place(arrays: Sequence[Given], space: AddressSpace) -> tuple[list[Argument], Memory]:
    """Arguments for a launch, and a copy of the arrays as the memory of a device."""
    arguments: list[Argument] = []
    memory: Memory = {}
    for index, given in enumerate(arrays):
        if isinstance(given, np.ndarray):
            dtype = dtype_of(given.dtype)
            storage = space.place(f"array{index}", given.nbytes, writable=given.flags.writeable)
            memory[storage] = np.frombuffer(bytearray(given.tobytes()), np.uint8)
            arguments.append(Handle(storage, dtype, given.shape, contiguous_strides(given.shape, dtype)))
        elif isinstance(given, np.generic):
            arguments.append(Scalar(dtype_of(given.dtype), given.item()))
        else:
            arguments.append(Struct(given) if isinstance(given, bytes) else given)
    return arguments, memory


def located(text: str) -> str:
    """PTX in which each line's instructions come from that line, where it names no source; its lines stay."""
    if ".loc" in text:
        return text
    lines = text.split("\n")
    for number in range(1, len(lines)):
        if lines[number - 1].rstrip().endswith(";"):  # else a statement may go on
            lines[number] = f".loc 1 {number + 1} 0 {lines[number]}"
    return "\n".join([*lines, f'.file 1 "{FILE}"', ""])


def run_both(
    text: str,
    entry: str,
    grid: Grid | int,
    block: Grid | int,
    *given: Given,
    shared_bytes: int = 0,
    only: str = "",
    counted: bool = True,
    cooperative: bool = False,
    cluster: Grid | int = 1,
) -> Outcome:
    """Runs a kernel on both executors; the arrays given stay as they are. Fails where the two disagree.

    `only` the executor `generated` or `oracle`: for launches that must fail. `counted`: compare the counters too, of
    the launch and of each line.
    """
    program = Program("gpu", text if only else located(text), "ptx", "sm_90")
    arguments, fast = place(given, AddressSpace())
    _, slow = place(given, AddressSpace())
    launch = Launch(
        "program", entry, three(grid), three(block), tuple(arguments), shared_bytes, three(cluster), cooperative
    )
    if only == "oracle":
        run_launch_slowly(program, launch, slow)
    printed: list[str] = []
    with redirecting(printed.append):
        record = run_launch(program, launch, fast)
    said: list[str] = []
    with redirecting(said.append):
        tally = run_launch_slowly(program, launch, slow)
    assert said == printed
    assert tally.counters.keys() <= COUNTER_ROW["gpu"].keys()
    arrays = [argument for argument in given if isinstance(argument, np.ndarray)]
    results: list[Array] = []
    for array, (storage, left), right in zip(arrays, fast.items(), slow.values(), strict=True):
        np.testing.assert_array_equal(left, right, err_msg=f"{entry}: {storage.name}")
        results.append(left.view(array.dtype).reshape(array.shape))
    counters = _compared(record.counters)
    if counted:
        _compare(entry, counters, tally.counters)
        lines = {(line.where, line.frames): _compared(line.counters) for line in record.lines}
        assert lines.keys() == tally.lines.keys()
        for line, own in lines.items():
            _compare(f"{entry}, {line[0]}", own, tally.lines[line])
    return Outcome(tuple(results), counters, "".join(printed))


def _compared(counters: Counters) -> Mapping[str, int]:
    return {name: int(c.value) for name, c in counters.items() if name not in NOT_COMPARED}


def _compare(what: str, fast: Mapping[str, int], slow: Mapping[str, int]) -> None:
    differing = [name for name in sorted(fast.keys() | slow.keys()) if fast.get(name, 0) != slow.get(name, 0)]
    rows = [f"{name}: generated {fast.get(name, 0)}, oracle {slow.get(name, 0)}" for name in differing]
    assert not rows, "\n  ".join([f"{what}: counters differ", *rows])
