"""Atomic operations on floats: both executors, and exact sums, minima and maxima that never read the table."""

from __future__ import annotations

import numpy as np
import pytest
from edge_values import cases
from exact import FORMATS
from expected import Expected, accepts
from opcodes import Opcode, read_opcode
from row_kernel import frame, run_text
from witness_float import arithmetic, extreme

SUMS = [
    f"{mnemonic}.{space}.add{'.noftz' if kind != 'f32' else ''}.{kind}"
    for mnemonic in ("atom", "red.relaxed.gpu")
    for space in ("global", "shared")
    for kind in ("f16", "bf16", "f16x2", "bf16x2", "f32")
]
VECTORS = [
    "atom.global.add.v2.f32", "red.global.add.v4.f32", "atom.global.add.noftz.v4.f16", "red.global.min.noftz.v8.bf16",
    "atom.global.max.noftz.v2.bf16", "atom.global.min.noftz.v2.f16x2", "red.global.max.noftz.v4.bf16x2",
    "atom.global.max.noftz.v8.f16",
]  # fmt: skip
SLOT = 32
"""Bytes of memory that a thread changes."""


def _pieces(opcode: str) -> tuple[str, int, int]:
    """The type of an operand, its bytes, and how many there are."""
    kind = opcode.rpartition(".")[2]
    count = next((int(part[1:]) for part in opcode.split(".") if part in ("v2", "v4", "v8")), 1)
    return kind, 4 if kind == "f32" or kind.endswith("x2") else 2, count


def _kernel(opcode: str, threads: int) -> str:
    kind, size, count = _pieces(opcode)
    letter = {2: "h", 4: "f" if kind == "f32" else "r"}[size]
    shared = ".shared." in opcode
    registers = [f"%{letter}{{}}{i}" for i in range(count)]
    values, olds = (", ".join(name.format(which) for name in registers) for which in ("b", "o"))
    if count > 1:
        values, olds = f"{{{values}}}", f"{{{olds}}}"
    target = "%a3" if shared else "%a1"
    lines = [
        ".reg .b16 %hb<8>; .reg .b16 %ho<8>; .reg .b32 %rb<8>; .reg .b32 %ro<8>; .reg .f32 %fb<8>; .reg .f32 %fo<8>;"
    ]
    lines += ["mul.wide.u32 %a2, %t0, 24; add.u64 %a0, %a0, %a2; add.u64 %a1, %a1, %a2;"]  # 32 bytes a thread
    lines += [f".shared .align 32 .b8 tile[{SLOT * 32}]; mov.u64 %a3, tile; mad.wide.u32 %a3, %t2, {SLOT}, %a3;"]
    for i, name in enumerate(registers):
        lines.append(f"ld.global.b{8 * size} {name.format('o')}, [%a0+{i * size}];")
        lines.append(f"st.{'shared' if shared else 'global'}.b{8 * size} [{target}+{i * size}], {name.format('o')};")
        lines.append(f"ld.global.b{8 * size} {name.format('b')}, [%a0+{SLOT * threads + i * size}];")
    destination = "" if opcode.startswith("red") else f"{olds}, "
    lines.append(f"{opcode} {destination}[{target}], {values};")
    for i, name in enumerate(registers):
        lines.append(f"st.global.b{8 * size} [%a1+{SLOT * threads + i * size}], {name.format('o')};")
        if shared:
            lines.append(f"ld.shared.b{8 * size} {name.format('b')}, [{target}+{i * size}];")
            lines.append(f"st.global.b{8 * size} [%a1+{i * size}], {name.format('b')};")
    return frame("\n".join(lines), "sm_90")


def _expected(opcode: str, old: int, b: int) -> Expected:
    """What an element becomes: a sum (in global memory without subnormals), or the smaller or larger number."""
    kind = _pieces(opcode)[0]
    name = "min" if ".min" in opcode else "max" if ".max" in opcode else "add"
    modifiers = frozenset({"ftz"} if kind == "f32" and ".global" in opcode else ())
    (wanted,) = (arithmetic if name == "add" else extreme)(Opcode(name, modifiers, (kind,)), old, b)
    return wanted


@pytest.mark.parametrize("opcode", [*SUMS, *VECTORS])
def test_elements_become_what_they_should(opcode: str) -> None:
    kind, size, count = _pieces(opcode)
    assert read_opcode(opcode).types[-1] == kind
    given = [*cases((kind, kind), opcode)]
    given = given[: len(given) // (32 * count) * 32 * count]
    threads = len(given) // count
    memory = np.zeros((2, threads, SLOT // size), f"u{size}")
    memory[:, :, :count] = np.array(given, f"u{size}").T.reshape(2, threads, count)
    inputs = np.ascontiguousarray(memory).reshape(-1).view(np.uint64)
    faults: list[str] = []
    for output in run_text(_kernel(opcode, threads), inputs, (2 * SLOT // 8, threads)):
        new, old = (
            part[:, :count].reshape(-1).tolist() for part in output.reshape(-1).view(f"u{size}").reshape(memory.shape)
        )
        assert old == [a for a, _ in given]
        for (a, b), got in zip(given, new, strict=True):
            wanted = _expected(opcode, a, b)
            if not accepts(wanted, kind, got):
                faults.append(f"{a:#x} and {b:#x} gave {got:#x}, the witness says {wanted}")
    assert not faults, "\n".join(faults[:8])


def test_sums_of_halves_that_are_no_numbers_have_one_pattern() -> None:
    for kind in ("f16", "bf16"):
        fmt = FORMATS[kind]
        nans = np.zeros((2, 32, SLOT // 2), np.uint16)
        nans[0, :, 0], nans[1, :, 0] = fmt.infinity, fmt.infinity | fmt.sign
        inputs = nans.reshape(-1).view(np.uint64)
        for output in run_text(_kernel(f"atom.global.add.noftz.{kind}", 32), inputs, (2 * SLOT // 8, 32)):
            assert set(output.reshape(-1).view(np.uint16).reshape(nans.shape)[0, :, 0].tolist()) == {0x7FFF}
