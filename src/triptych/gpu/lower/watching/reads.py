"""Asynchronous readers of shared memory: a short list of each block, which writers look at.

Bulk copies and reductions that read shared memory are done when their thread has waited for their group, or when the
phase of the mbarrier was seen to end that they complete; multiplications of a warpgroup when one of its warps has
waited for their group. What a matrix descriptor describes is told row by row.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from llvmlite import ir

from triptych.gpu.isa.tensor.matrix_descriptors import PIECES_ALONG, ROWS, MatrixDescriptor, read_descriptor
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, VOID, Emitter, constant, start_function
from triptych.gpu.lower.tensor.descriptors import Word
from triptych.gpu.lower.watching.completion import NOTE, done_lanes
from triptych.gpu.lower.watching.layout import WatchedMemory, lane_of, watch
from triptych.gpu.lower.watching.records import READS_KEPT, HazardKind, Pending, WatchedBlock
from triptych.gpu.tensor_map import CHUNK_BYTES

MEETS, OVERWRITE, DROP, COVERS = (watch(name) for name in ("meets", "overwrite", "drop", "covers"))


def build_reads(module: ir.Module) -> None:
    """Emits `MEETS`, `COVERS`, `OVERWRITE` and `DROP`."""
    _build_meets(module)
    _build_covers(module)
    _build_overwrite(module)
    _build_drop(module)


@contextmanager
def _each_reader(memory: WatchedMemory, low: ir.Value, high: ir.Value) -> Generator[ir.Value]:
    """Runs for each reader of something between two offsets."""
    e, b = memory.e, memory.b
    with e.counted(e.load_field(WatchedBlock, memory.block(), "reads")) as i:
        pending = memory.read(i)
        before = b.icmp_unsigned("<", e.load_field(Pending, pending, "low"), high)
        behind = b.icmp_unsigned(">", e.load_field(Pending, pending, "high"), low)
        with e.when(b.and_(before, behind), likely=False):
            yield pending


def _build_meets(module: ir.Module) -> None:
    """meets(context, shared, low, high): 1 where a reader may reach between two offsets."""
    e = start_function(module, MEETS, I32, [POINTER, I64, I64, I64])
    context, shared, low, high = e.function.args
    with _each_reader(WatchedMemory(e, context, shared), low, high):
        e.b.ret(ir.Constant(I32, 1))
    e.b.ret(ir.Constant(I32, 0))


@contextmanager
def each_row(
    e: Emitter, matrix: MatrixDescriptor[Word], lines: ir.Value, first: ir.Value, by_k: ir.Value
) -> Generator[ir.Value]:
    """Runs for the rows of the pieces from the `first` one on; gives their addresses. `by_k`: an i1."""
    with (
        e.counted(lines) as band, e.counted(constant(PIECES_ALONG)) as along, e.counted(constant(ROWS)) as row,
    ):  # fmt: skip
        line = Word(e, e.b.add(band, first))
        pieces = [matrix.piece(line, Word(e, along), by_k=kind).value for kind in (True, False)]
        yield matrix.row(Word(e, e.b.select(by_k, *pieces)), Word(e, row)).value


def _build_covers(module: ir.Module) -> None:
    """covers(pending, low, high): whether a reader of a matrix reads something between two offsets, an i32."""
    e = start_function(module, COVERS, I32, [POINTER, I64, I64])
    pending, low, high = e.function.args
    matrix = read_descriptor(Word(e, e.load_field(Pending, pending, "descriptor")))
    by_k = e.b.trunc(e.load_field(Pending, pending, "by_k"), I1)
    with each_row(e, matrix, e.load_field(Pending, pending, "lines"), constant(0), by_k) as address:
        before = e.b.icmp_unsigned("<", address, high)
        behind = e.b.icmp_unsigned(">", e.b.add(address, constant(CHUNK_BYTES)), low)
        with e.when(e.b.and_(before, behind)):
            e.b.ret(ir.Constant(I32, 1))
    e.b.ret(ir.Constant(I32, 0))


def _build_overwrite(module: ir.Module) -> None:
    """overwrite(context, shared, site, lane, low, high): what lies between two offsets is written."""
    e = start_function(module, OVERWRITE, VOID, [POINTER, I64, POINTER, I64, I64, I64])
    context, shared, site, lane, low, high = e.function.args
    with _each_reader(WatchedMemory(e, context, shared), low, high) as pending:
        reader = e.load_field(Pending, pending, "lane")
        open_ = e.variable(I1, e.b.not_(lane_of(e, done_lanes(e, context, shared, pending), reader)))
        is_matrix = e.b.icmp_unsigned("!=", e.load_field(Pending, pending, "lines"), constant(0))
        with e.when(e.b.and_(e.get(open_, I1), is_matrix)):
            e.b.store(e.b.trunc(e.intrinsic(COVERS, I32, [pending, low, high]), I1), open_)
        with e.when(e.get(open_, I1)):
            kind = constant(HazardKind.OVERWRITE)
            e.intrinsic(NOTE, VOID, [context, shared, kind, site, lane, low, pending, reader])
    e.b.ret_void()


def _build_drop(module: ir.Module) -> None:
    """drop(context): forgets the readers of the block's shared memory that are done."""
    e = start_function(module, DROP, VOID, [POINTER])
    (context,) = e.function.args
    memory = WatchedMemory(e, context)
    kept = e.variable(I64, constant(0))
    e.b.store(constant(0), e.field(WatchedBlock, memory.block(), "reading"))
    with e.counted(e.load_field(WatchedBlock, memory.block(), "reads")) as i:
        pending = memory.read(i)
        done = done_lanes(e, context, memory.shared, pending)
        with e.when(e.b.not_(lane_of(e, done, e.load_field(Pending, pending, "lane")))):
            place = e.get(kept, I64)
            _read_regions(memory, pending)
            with e.when(e.b.icmp_unsigned("!=", place, i)):
                size = constant(Pending.size())
                copied = [memory.read(place), pending, size, ir.Constant(I1, 0)]
                e.intrinsic("llvm.memcpy.p0.p0.i64", VOID, copied)
            e.b.store(e.b.add(place, constant(1)), kept)
    e.b.store(e.get(kept, I64), e.field(WatchedBlock, memory.block(), "reads"))
    memory.close()
    e.b.ret_void()


def _read_regions(memory: WatchedMemory, pending: ir.Value) -> None:
    """Notes the regions of a reader."""
    e, place = memory.e, memory.e.field(WatchedBlock, memory.block(), "reading")
    low, high = (e.load_field(Pending, pending, name) for name in ("low", "high"))
    regions = memory.b.zext(memory.regions(low, high), I64)
    memory.b.store(memory.b.or_(memory.b.load(place, typ=I64), regions), place)


def add_reader(memory: WatchedMemory, completion: ir.Value, given: Mapping[str, ir.Value]) -> None:
    """Writes a reader of the block's own shared memory down, unless there are too many."""
    e, b = memory.e, memory.b
    count = e.field(WatchedBlock, memory.block(), "reads")
    with e.when(b.icmp_unsigned(">=", b.load(count, typ=I64), constant(READS_KEPT)), likely=False):
        e.intrinsic(DROP, VOID, [memory.context])
    place = b.load(count, typ=I64)
    with e.when(b.icmp_unsigned("<", place, constant(READS_KEPT)), likely=True):
        memory.start(memory.read(place), completion, given)
        _read_regions(memory, memory.read(place))
        memory.close()
        b.store(b.add(place, constant(1)), count)
