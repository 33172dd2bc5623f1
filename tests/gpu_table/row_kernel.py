"""One kernel for each row of the table: every opcode of the row, over arrays of operands, on both executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

import numpy as np
from edge_values import WIDTHS, cases
from numpy.typing import NDArray
from opcodes import some_opcodes_of

from triptych.core.dtypes import DTYPES
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.plan import Launch, Program
from triptych.gpu import run_launch
from triptych.gpu.isa import Form, Row, find_form
from triptych.gpu.isa.targets import meets
from triptych.gpu.oracle import run_launch_slowly

Lanes = NDArray[np.uint64]
T = TypeVar("T")
Execute = Callable[[Program, Launch, Mapping[Storage, NDArray[np.uint8]]], Mapping[str, int]]

IMMEDIATES: Mapping[str, Sequence[int]] = {
    "lop3": (0x00, 0xFF, 0x80, 0xC0, 0x96, 0xE8, 0xF8, 0x3C, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x1B),
}
"""An operand of these instructions is written in their text: the fourth."""
_IMMEDIATE_PLACE = 3
_MAY_BE_SHORT = ("min", "max")
"""Their rows are run without the operands that may be missing, too."""
MOST_OPCODES = 36
"""Of a row with more, so many are run: every alternative at least once, the rest at random."""
_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_107a")
"""A kernel is for the first that has all its opcodes; the last has all rows' of this folder."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An opcode with the types of its operands, and its operands' values."""

    opcode: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    operands: tuple[tuple[int, ...], ...]
    immediate: int | None = None
    addresses: frozenset[int] = frozenset()
    """Which sources are written in brackets."""
    reads_carry: bool = False
    """The last source is the carry flag."""
    writes_carry: bool = False
    """The last destination is the carry flag."""
    left_out: int = 0
    """How many operands that may be missing its text does not have: the last ones."""

    @property
    def text(self) -> str:
        """The opcode, and the operand that its text holds, if it does."""
        return self.opcode if self.immediate is None else f"{self.opcode} {self.immediate:#x}"

    def with_immediate(self, operands: Sequence[T]) -> tuple[T | int, ...]:
        """The operands with the one that the text holds."""
        if self.immediate is None:
            return tuple(operands)
        return (*operands[:_IMMEDIATE_PLACE], self.immediate, *operands[_IMMEDIATE_PLACE:])


@dataclass(frozen=True, slots=True)
class Result:
    """What both executors gave: the raw bits of each destination, for each case."""

    instance: Instance
    generated: tuple[Lanes, ...]
    oracle: tuple[Lanes, ...]


def instances_of(row: Row, target: str = _TARGETS[-1]) -> list[Instance]:
    """The opcodes of a row that a target has, with their operands."""
    immediates = IMMEDIATES.get(row.mnemonic, (None,))
    most = sum(slot.optional and not slot.paired for slot in row.operands) if row.mnemonic in _MAY_BE_SHORT else 0
    opcodes = some_opcodes_of(row, MOST_OPCODES)
    found = [instance_of(opcode, value, out) for opcode in opcodes for value in immediates for out in range(most + 1)]
    found = [instance for instance in found if all(meets(target, need) for need in _form_of(instance).needs)]
    cases = min((len(instance.operands) for instance in found), default=0)
    return [replace(instance, operands=instance.operands[:cases]) for instance in found]


def instance_of(opcode: str, immediate: int | None, left_out: int | None = None) -> Instance:
    """An opcode of the table with its operands, without the last `left_out` ones (None: those of later targets)."""
    mnemonic, *modifiers = opcode.split(".")
    form = find_form(mnemonic, tuple(modifiers))
    assert form is not None
    kept = list(_types(form, destination=False))
    if left_out is None:
        left_out = sum(slot.optional and slot.name in form.row.needs for slot in form.row.operands)
    kept = kept[: len(kept) - left_out]
    if immediate is not None:
        del kept[_IMMEDIATE_PLACE]
    slots = [slot for slot in form.row.operands if not slot.is_destination]
    carries = [slot.is_destination for slot in form.row.operands if slot.implied]
    return Instance(
        opcode, tuple(kept), _types(form, destination=True), cases(tuple(kept), mnemonic), immediate,
        frozenset(i for i, slot in enumerate(slots) if slot.is_address), False in carries, True in carries, left_out,
    )  # fmt: skip


def _types(form: Form, *, destination: bool) -> tuple[str, ...]:
    slots = [slot for slot in form.row.operands if slot.is_destination is destination]
    return tuple(form.operand_type(slot).name for slot in slots)


def _target_of(instances: Sequence[Instance]) -> str:
    """The first target that has all the opcodes."""
    needs = {need for instance in instances for need in _form_of(instance).needs}
    return next(target for target in _TARGETS if all(meets(target, need) for need in needs))


def _form_of(instance: Instance) -> Form:
    mnemonic, *modifiers = instance.opcode.split(".")
    form = find_form(mnemonic, tuple(modifiers))
    assert form is not None
    optional = sum(slot.optional and not slot.paired for slot in form.row.operands)
    slots = [slot.name for slot in form.row.operands if slot.optional and not slot.paired]
    return replace(form, given=frozenset(slots[: optional - instance.left_out]))


def register_bits(name: str) -> int:
    """The width of the register that holds a type: bytes that are numbers live in 32-bit registers."""
    return 8 if name == "e2m1x2" else 32 if WIDTHS[name] == 8 else max(WIDTHS[name], 16)


def frame(body: str, target: str = _TARGETS[0]) -> str:
    """A kernel around a body: %a0 and %a1 are the thread's places in the inputs and the outputs, %t0 its number."""
    return f""".version {"8.0" if target == _TARGETS[0] else "9.4"}
.target {target}
.address_size 64

.entry row(.param .u64 in, .param .u64 out)
{{
.reg .pred %p<8>; .reg .b8 %c<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %d<8>; .reg .f64 %e<8>;
.reg .b32 %t<4>; .reg .b64 %a<4>;
ld.param.u64 %a0, [in]; ld.param.u64 %a1, [out];
mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t0, %t0, %t1, %t2;
mul.wide.u32 %a2, %t0, 8; add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2;
{body}
ret;
}}
"""


class _Writer:
    """Writes the kernel's text."""

    def __init__(self, instances: Sequence[Instance]) -> None:
        self.lines: list[str] = []
        self.inputs: dict[tuple[str, ...], int] = {}
        self.outputs = 0
        self.instances = sorted(instances, key=lambda instance: instance.sources)
        self.cases = len(instances[0].operands)

    def text(self) -> str:
        columns = 0
        for sources, instances in groupby(self.instances, lambda instance: instance.sources):
            self.inputs[sources] = columns
            for position, name in enumerate(sources):
                self._load(name, position, 8 * self.cases * (columns + position))
            columns += len(sources)
            for instance in instances:
                self._execute(instance)
        body = "\n".join(self.lines)
        return frame(body, _target_of(self.instances))

    def _load(self, name: str, position: int, offset: int) -> None:
        register = _register(name, position)
        if name == "pred":
            self.lines.append(f"ld.global.u32 %t1, [%a0+{offset}]; setp.ne.u32 {register}, %t1, 0;")
        else:
            self.lines.append(f"ld.global.b{register_bits(name)} {register}, [%a0+{offset}];")

    def _execute(self, instance: Instance) -> None:
        targets = [_register(name, 5 + position) for position, name in enumerate(instance.targets)]
        sources = [_register(name, i) for i, name in enumerate(instance.sources)]
        if instance.reads_carry:
            self.lines.append(f"selp.u32 %t1, 1, 0, {sources.pop()}; add.cc.u32 %t2, %t1, -1;")
        written = targets[:-1] if instance.writes_carry else targets
        sources = [f"[{name}]" if i in instance.addresses else name for i, name in enumerate(sources)]
        operands = ["|".join(written), *map(str, instance.with_immediate(sources))]
        self.lines.append(f"{instance.opcode} {', '.join(operands)};")
        if instance.writes_carry:
            self.lines.append(f"addc.u32 %t1, 0, 0; setp.ne.u32 {targets[-1]}, %t1, 0;")
        for name, target in zip(instance.targets, targets, strict=True):
            offset = 8 * self.cases * self.outputs
            self.outputs += 1
            if name == "pred":
                self.lines.append(f"selp.b32 %t1, 1, 0, {target}; st.global.b32 [%a1+{offset}], %t1;")
            else:
                self.lines.append(f"st.global.b{register_bits(name)} [%a1+{offset}], {target};")


def _register(name: str, number: int) -> str:
    if name == "pred":
        return f"%p{number}"
    if name in ("f32", "f64"):
        return f"%{'f' if name == 'f32' else 'e'}{number}"
    return f"%{ {8: 'c', 16: 'h', 32: 'r', 64: 'd'}[register_bits(name)] }{number}"


@dataclass(frozen=True, slots=True)
class RowKernel:
    """All opcodes of a row as one kernel, `row`: a thread for each case; `shape` is (outputs, cases)."""

    text: str
    inputs: Lanes
    shape: tuple[int, int]
    instances: tuple[Instance, ...]
    """In the order of their outputs."""


def kernel_of(row: Row, target: str = _TARGETS[-1]) -> RowKernel:
    """The kernel of a row's opcodes that a target has, with their operands."""
    return kernel_of_instances(instances_of(row, target))


def kernel_of_instances(instances: Sequence[Instance]) -> RowKernel:
    """The kernel of opcodes of one mnemonic, with their operands."""
    assert len({len(instance.operands) for instance in instances}) == 1
    writer = _Writer(instances)
    text = writer.text()
    inputs = _fill_inputs(writer, instances[0].opcode.partition(".")[0])
    return RowKernel(text, inputs, (writer.outputs, writer.cases), tuple(writer.instances))


def run_row(row: Row) -> list[Result]:
    """Runs all opcodes of a row; the counters of both executors must agree too."""
    kernel = kernel_of(row)
    return _split(kernel.instances, *run_text(kernel.text, kernel.inputs, kernel.shape))


def run_text(text: str, inputs: Lanes, shape: tuple[int, int]) -> tuple[Lanes, Lanes]:
    """Runs the kernel `row` of (inputs, outputs), a thread for each case, by generated code and by the oracle.

    Gives the outputs of both, arrays of the shape; their counters must agree.
    """
    results: list[Lanes] = []
    counters: list[Mapping[str, int]] = []
    for execute in (_run_generated, _run_slowly):
        output, tally = _run_by(execute, text, inputs, shape)
        counters.append(tally)
        results.append(output)
    names = counters[0].keys() | counters[1].keys()
    differing = {n: [tally.get(n, 0) for tally in counters] for n in names if len({t.get(n, 0) for t in counters}) > 1}
    assert not differing, f"counters of the generated code and of the oracle: {differing}"
    return results[0], results[1]


def run_generated(kernel: RowKernel) -> Lanes:
    """Runs a kernel by generated code alone; gives its outputs."""
    return _run_by(_run_generated, kernel.text, kernel.inputs, kernel.shape)[0]


def _run_by(execute: Execute, text: str, inputs: Lanes, shape: tuple[int, int]) -> tuple[Lanes, Mapping[str, int]]:
    space = AddressSpace()
    output = np.zeros(shape, np.uint64)
    arrays = {space.place("in", inputs.nbytes): inputs, space.place("out", output.nbytes): output}
    handles = tuple(Handle(s, DTYPES["u64"], array.shape, array.strides) for s, array in arrays.items())
    launch = Launch("program", "row", (shape[1] // 32, 1, 1), (32, 1, 1), handles)
    memory = {s: a.reshape(-1).view(np.uint8) for s, a in arrays.items()}
    return output, execute(Program("gpu", text, "ptx", "sm_80"), launch, memory)


def _run_generated(program: Program, launch: Launch, memory: Mapping[Storage, NDArray[np.uint8]]) -> Mapping[str, int]:
    record = run_launch(program, launch, memory)
    return {name: int(c.value) for name, c in record.counters.items() if name != "threads.active_lanes"}


def _run_slowly(program: Program, launch: Launch, memory: Mapping[Storage, NDArray[np.uint8]]) -> Mapping[str, int]:
    return run_launch_slowly(program, launch, memory).counters


def _fill_inputs(writer: _Writer, seed: str) -> Lanes:
    columns: list[list[int]] = []
    noise = np.random.default_rng(len(seed))
    for sources in writer.inputs:
        columns += [list(column) for column in zip(*cases(sources, seed)[: writer.cases], strict=True)]
    inputs = np.array(columns, np.uint64)
    names = [name for sources in writer.inputs for name in sources]
    for column, name in zip(inputs, names, strict=True):
        if WIDTHS[name] == 8 and name != "e2m1x2":  # the rest of the register must not matter
            column |= noise.integers(0, 1 << 24, writer.cases, np.uint64) << np.uint64(8)
    return inputs


def _split(instances: Sequence[Instance], generated: Lanes, oracle: Lanes) -> list[Result]:
    rows = iter(zip(generated, oracle, strict=True))
    results: list[Result] = []
    for one in instances:
        fast, slow = zip(*(next(rows) for _ in one.targets), strict=True)
        results.append(Result(one, fast, slow))
    return results
