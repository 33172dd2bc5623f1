"""Where a thread of a random kernel reads and writes: nothing that another thread writes in the same stretch."""

from __future__ import annotations

from dataclasses import dataclass

from operands import Source

from triptych.gpu.isa.spaces import GLOBAL, Space

TABLE_BYTES = 2048
"""A global array that all only read; so large are the module's `constants` and `module`, too, less a factor of 8."""
SMALL_BYTES = TABLE_BYTES // 8
SLOT_BYTES = 64
"""What each thread owns in global, shared and local memory, in one piece."""
CELL_BYTES = 32
"""What each thread owns for its own atomic operations, in global and in shared memory."""
AREAS, AREA_BYTES = 16, 64
"""Places of atomic operations in which all take part: an area takes one operation of one type."""
BLOB_BYTES = 64
"""A kernel's parameter that is a structure."""
COMMON_BYTES = AREAS * AREA_BYTES


@dataclass(frozen=True, slots=True)
class Shape:
    """The launch's threads, as the text has them written in."""

    threads: int
    """Of a block, rounded up to whole warps."""
    blocks: int

    @property
    def total(self) -> int:
        """Threads of the grid."""
        return self.threads * self.blocks

    @property
    def scratch_bytes(self) -> int:
        """Of global memory: a slot for each thread, then for each size of access an element for each thread."""
        return 2 * SLOT_BYTES * self.total

    @property
    def cells_at(self) -> int:
        """Where the cells start in the shared array."""
        return 2 * SLOT_BYTES * self.threads

    @property
    def common_at(self) -> int:
        """Where the common areas start in the shared array."""
        return self.cells_at + CELL_BYTES * self.threads

    @property
    def tile_bytes(self) -> int:
        """The shared array."""
        return self.common_at + COMMON_BYTES

    def lines(self, table: str, scratch: str, cells: str, common: str) -> tuple[str, ...]:
        """Sets %t0, %t1 (the thread in the block, in the grid), %s and %b, from four parameters."""
        return (
            f"ld.param.u64 %b0, [{table}];", f"ld.param.u64 %b2, [{scratch}];", f"ld.param.u64 %b9, [{cells}];",
            f"ld.param.u64 %b4, [{common}];",
            "mov.u32 %t0, %tid.x;", "mov.u32 %x0, %ntid.x;", "mov.u32 %x1, %tid.y;", "mad.lo.u32 %t0, %x1, %x0, %t0;",
            "mov.u32 %x0, %ctaid.x;", f"mad.lo.u32 %t1, %x0, {self.threads}, %t0;",
            f"mad.wide.u32 %b1, %t1, {SLOT_BYTES}, %b2;", f"mad.wide.u32 %b3, %t1, {CELL_BYTES}, %b9;",
            "mov.u32 %x0, tile;", f"mad.lo.u32 %s0, %t0, {SLOT_BYTES}, %x0;",
            f"mad.lo.u32 %s1, %t0, {CELL_BYTES}, %x0;", f"add.u32 %s1, %s1, {self.cells_at};",
            "cvt.u64.u32 %b6, %s0;", "cvta.shared.u64 %b6, %b6;", "mov.u64 %b7, own;", "cvta.local.u64 %b7, %b7;",
            "cvt.u64.u32 %b10, %s1;", "cvta.shared.u64 %b10, %b10;",
            f"mov.u64 %b11, tile+{self.common_at};", "cvta.shared.u64 %b11, %b11;",
            "createpolicy.fractional.L2::evict_last.b64 %b5;",
        )  # fmt: skip

    # Addresses: lines that find them, and the operand ------------------------------------------------------------

    def element(self, source: Source, space: Space, size: int, *, store: bool) -> tuple[list[str], str] | None:
        """An address for an access of `size` bytes; None: there is none of this size or in this space."""
        if size > (CELL_BYTES if space is GLOBAL else 16):  # 32 bytes at once: of global memory alone
            return None
        match space.name:
            case "global":
                own = store or source.chance(0.35)
                return self._own_global(source, size) if own else _in_table(source, size)
            case "shared":
                return self._own_shared(source, size)
            case "local":
                return _in_local(source, size)
            case "generic":
                return self._generic(source, size, store=store)
            case "const" if not store:
                return _in_constants(source, size)
            case "param" if not store and not source.in_function:
                return _in_parameter(source, size)
            case _:
                return None

    def _own_global(self, source: Source, size: int) -> tuple[list[str], str]:
        if source.chance(0.5):
            return [], f"[%b1+{_offset(source, size)}]"
        start = self.total * (SLOT_BYTES + size - 1)
        return [f"mad.wide.u32 %y0, %t1, {size}, %b2;"], f"[%y0+{start}]"

    def _own_shared(self, source: Source, size: int) -> tuple[list[str], str]:
        if source.chance(0.5):
            return [], f"[%s0+{_offset(source, size)}]"
        start = self.threads * (SLOT_BYTES + size - 1)
        return ["mov.u32 %x0, tile;", f"mad.lo.u32 %x0, %t0, {size}, %x0;"], f"[%x0+{start}]"

    def _generic(self, source: Source, size: int, *, store: bool) -> tuple[list[str], str]:
        bases = ("%b1", "%b6", "%b7") if store else ("%b0", "%b1", "%b6", "%b7")
        first, second = source.random.choice(bases), source.random.choice(bases)
        offset = _offset(source, size)
        if first == second or source.chance(0.5):
            return [], f"[{first}+{offset}]"
        return [f"selp.b64 %y0, {first}, {second}, {source.of_class('p')};"], f"[%y0+{offset}]"


def _offset(source: Source, size: int) -> int:
    return size * source.random.randrange(SLOT_BYTES // size)


def _picked(source: Source, count: int) -> str:
    """Sets %x0 to one of `count` indices, a power of 2, in one way or another."""
    index = source.random.choice((source.word(), source.word(), "%t0", "%t1"))
    return f"and.b32 %x0, {index}, {count - 1};"


def _in_table(source: Source, size: int) -> tuple[list[str], str]:
    offset = size * source.random.randrange(TABLE_BYTES // size // 2)
    if source.chance(0.15):
        return [], f"[%b0+{offset}]"
    stride = source.random.choice((size, size, 2 * size))
    return [_picked(source, TABLE_BYTES // 2 // stride), f"mad.wide.u32 %y0, %x0, {stride}, %b0;"], f"[%y0+{offset}]"


def _in_local(source: Source, size: int) -> tuple[list[str], str]:
    if source.chance(0.4):
        return [], f"[own+{_offset(source, size)}]"
    mask = SLOT_BYTES // size - 1
    lines = [f"and.b32 %x0, {source.word()}, {mask};", "mov.u32 %x1, own;", f"mad.lo.u32 %x1, %x0, {size}, %x1;"]
    return lines, "[%x1]"


def _in_constants(source: Source, size: int) -> tuple[list[str], str]:
    if source.chance(0.3):
        return [], f"[constants+{size * source.random.randrange(SMALL_BYTES // size)}]"
    lines = [_picked(source, SMALL_BYTES // size), "mov.u64 %y0, constants;", f"mad.wide.u32 %y0, %x0, {size}, %y0;"]
    return lines, "[%y0]"


def _in_parameter(source: Source, size: int) -> tuple[list[str], str]:
    return [], f"[blob+{size * source.random.randrange(BLOB_BYTES // size)}]"
