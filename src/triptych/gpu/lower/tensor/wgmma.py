"""A warp's part of `wgmma` as a helper: matrices read from shared memory as descriptors say, multiplied, D in place.

A kernel calls `(context, site, mask, registers of C and D in memory, A, B, bits of the predicate)`: A is where its
registers are in memory, or a descriptor of each lane, as B is.
"""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.tensor.matrix_descriptors import (
    GROUP_WARPS,
    PIECES_ALONG,
    ROWS,
    DescriptorFault,
    GroupProduct,
    MatrixDescriptor,
    read_descriptor,
)
from triptych.gpu.lower.primitives.emitter import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Emitter,
    constant,
    start_function,
    vector,
)
from triptych.gpu.lower.records import Context, FaultKind, Site
from triptych.gpu.lower.scheduling.services import record_fault
from triptych.gpu.lower.tensor.arithmetic import ARITHMETICS, Tile
from triptych.gpu.lower.tensor.descriptors import Word
from triptych.gpu.lower.tensor.elements import LEAST_ALIGNMENT, widen
from triptych.gpu.lower.tensor.products import by_elements, pack, unpack
from triptych.gpu.lower.watching.layout import watched_name
from triptych.gpu.lower.watching.products import MATRIX
from triptych.gpu.tensor_map import CHUNK_BYTES

_WORDS = CHUNK_BYTES // 4
"""Of a row of a piece."""


def group_name(product: GroupProduct) -> str:
    """The helper's symbol."""
    return f"triptych.wgmma.{product.name}"


def build_group(product: GroupProduct, *, watched: bool = False) -> ir.Module:
    """The module with the helper, or its variant for kernels that asynccheck looks at."""
    name = watched_name(group_name(product)) if watched else group_name(product)
    module = ir.Module(name=name)
    a = POINTER if product.a_in_registers else vector(I64)
    e = start_function(module, name, VOID, [POINTER, POINTER, I32, POINTER, a, vector(I64), I32])
    _Multiplication(e, product, watched=watched).build()
    return module


class _Multiplication:
    """Emits the helper."""

    def __init__(self, e: Emitter, product: GroupProduct, *, watched: bool) -> None:
        self.e, self.b, self.product, self.watched = e, e.b, product, watched
        self.context, self.site, self.mask, self.registers, self.given_a, self.given_b, self.kept = e.function.args

    def build(self) -> None:
        """All of it."""
        e, product = self.e, self.product
        with e.when(self.b.icmp_unsigned("==", self.mask, ir.Constant(I32, 0)), likely=False):
            self.b.ret_void()
        warp = e.load_field(Context, self.context, "warp_index")
        self._check_group(warp)
        a, b = self._read_a(warp), self._read_b()
        sums = unpack(e, product.warp.c, self.registers)
        with e.when(self.b.icmp_unsigned("==", self.kept, ir.Constant(I32, 0))):
            e.clear(sums.place, sums.size)
        ARITHMETICS[product.warp.numerics](e, product.warp, a, b, sums)
        pack(e, product.warp.d, sums, self.registers)
        e.add_field(Site, self.site, "requests", constant(1 if product.a_in_registers else 2))
        e.add_field(Site, self.site, "bytes", constant(product.a_bytes + product.b_bytes))
        self.b.ret_void()

    # Faults -----------------------------------------------------------------------------------------------------

    def _refuse(self, wrong: ir.Value, why: DescriptorFault, value: ir.Value) -> None:
        """Returns where descriptors, of which `value` is one, will not do."""
        with self.e.when(wrong, likely=False):
            where = {"site": self.site, "address": value, "detail": constant(why)}
            record_fault(self.e, self.context, FaultKind.MATRIX_DESCRIPTOR, **where)
            self.b.ret_void()

    def _check_group(self, warp: ir.Value) -> None:
        last = self.b.or_(warp, constant(GROUP_WARPS - 1))
        missing = self.b.icmp_unsigned(">=", last, self.e.load_field(Context, self.context, "warp_count"))
        self._refuse(missing, DescriptorFault.GROUP, constant(0))
        some = self.b.icmp_unsigned("!=", self.kept, ir.Constant(I32, 0))
        all_ = self.b.icmp_unsigned("==", self.kept, ir.Constant(I32, -1))
        self._refuse(self.b.xor(some, all_), DescriptorFault.LANES, constant(0))

    def _descriptor(self, given: ir.Value) -> MatrixDescriptor[Word]:
        """What all lanes give."""
        bits = self.b.extract_element(given, ir.Constant(I32, 0))
        same = self.e.all_lanes(self.b.icmp_unsigned("==", given, self.e.splat(bits)))
        self._refuse(self.b.not_(same), DescriptorFault.LANES, bits)
        return read_descriptor(Word(self.e, bits))

    # Matrices ---------------------------------------------------------------------------------------------------

    def _read_a(self, warp: ir.Value) -> Tile:
        product, fragment = self.product, self.product.warp.a
        if product.a_in_registers:
            tile = unpack(self.e, fragment, self.given_a)
        else:
            tile = Tile.of(self.e, fragment)
            first = self.b.mul(self.b.and_(warp, constant(GROUP_WARPS - 1)), constant(product.line_pieces))
            matrix = self._descriptor(self.given_a)
            self._watch(self.given_a, first, fragment.bands, GROUP_WARPS, by_k=product.by_k[0])
            self._read(matrix, tile, first, by_k=product.by_k[0])
            if not product.by_k[0]:  # which has as many pieces along K as one below the other
                tile = by_elements(self.e, tile)
        if product.negated:
            with self.e.counted(constant(fragment.bands * fragment.along)) as block:
                place = self.e.offset(tile.place, self.b.mul(block, constant(tile.block_bytes)))
                numbers = self.b.load(place, align=LEAST_ALIGNMENT, typ=tile.block_type)
                self.b.store(self.b.fneg(numbers), place, align=LEAST_ALIGNMENT)
        return tile

    def _read_b(self) -> Tile:
        """B by elements of K: eight columns of a row side by side."""
        tile, by_k = Tile.of(self.e, self.product.warp.b), self.product.by_k[1]
        matrix = self._descriptor(self.given_b)
        self._watch(self.given_b, constant(0), tile.fragment.bands, 1, by_k=by_k)
        self._read(matrix, tile, constant(0), by_k=by_k)
        return by_elements(self.e, tile) if by_k else tile

    def _watch(self, given: ir.Value, first: ir.Value, bands: int, parts: int, *, by_k: bool) -> None:
        """Has asynccheck look at a matrix, of which the warps of the group read so many parts."""
        if self.watched:
            bits = self.b.extract_element(given, ir.Constant(I32, 0))
            numbers = [first, *map(constant, (bands, parts * bands, int(by_k)))]
            self.e.intrinsic(MATRIX, VOID, [self.context, self.site, bits, *numbers])

    def _read(self, matrix: MatrixDescriptor[Word], tile: Tile, first: ir.Value, *, by_k: bool) -> None:
        """The numbers of the pieces from the `first` one on, each a block of the tile as it lies in shared memory.

        Blocks stand as those of the fragment do where a matrix lies by K, else as `by_elements` has them.
        """
        e, fragment = self.e, tile.fragment
        size = e.load_field(Context, self.context, "shared_size")
        limit = self.b.sub(size, constant(CHUNK_BYTES))
        base = e.load_field(Context, self.context, "shared")
        rows = Word(e, ir.Constant(vector(I64, ROWS), [constant(row) for row in range(ROWS)]))
        with e.counted(constant(fragment.bands)) as band, e.counted(constant(PIECES_ALONG)) as along:
            line = Word(e, self.b.add(band, first))
            addresses = matrix.row(matrix.piece(line, Word(e, along), by_k=by_k), rows).value
            self._check_bounds(addresses, limit)
            hosts = self.b.add(addresses, e.splat(base, ROWS))
            numbers = widen(e, fragment.element, self._load_rows(hosts))
            major, minor, count = (along, band, fragment.bands) if by_k else (band, along, PIECES_ALONG)
            block = self.b.add(self.b.mul(major, constant(count)), minor)
            place = e.offset(tile.place, self.b.mul(block, constant(tile.block_bytes)))
            self.b.store(numbers, place, align=LEAST_ALIGNMENT)

    def _check_bounds(self, addresses: ir.Value, limit: ir.Value) -> None:
        beyond = self.b.icmp_signed(">", addresses, self.e.splat(limit, ROWS))
        bits = self.b.bitcast(beyond, I8)
        with self.e.when(self.b.icmp_unsigned("!=", bits, ir.Constant(I8, 0)), likely=False):
            lowest = self.e.intrinsic("llvm.cttz.i8", I8, [bits, ir.Constant(I1, 1)])
            address = self.b.extract_element(addresses, lowest)
            kind, size = FaultKind.SHARED_BOUNDS, constant(CHUNK_BYTES)
            record_fault(self.e, self.context, kind, site=self.site, address=address, size=size)
            self.b.ret_void()

    def _load_rows(self, hosts: ir.Value) -> ir.Value:
        """Eight rows of 16 bytes, one behind the other, as a <32 x i32>."""
        pointers = (
            self.b.inttoptr(self.b.extract_element(hosts, ir.Constant(I32, row)), POINTER) for row in range(ROWS)
        )
        parts = [self.b.load(pointer, align=1, typ=vector(I32, _WORDS)) for pointer in pointers]
        while len(parts) > 1:
            parts = [self._joined(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def _joined(self, first: ir.Value, second: ir.Value) -> ir.Value:
        places = range(2 * first.type.count)
        order = ir.Constant(vector(I32, len(places)), [ir.Constant(I32, place) for place in places])
        return self.b.shuffle_vector(first, second, order)
