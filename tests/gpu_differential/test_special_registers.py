"""Special registers: both executors read each of the table alike, and as the launch's shape says."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

from triptych.core.errors import PtxSyntaxError, UnsupportedFeature
from triptych.gpu.isa.special_registers import SPECIALS, Special, Varies
from triptych.gpu.isa.types import PRED
from triptych.gpu.syntax.names import is_special

WORDS = {
    "%smid": 0, "%nsmid": 1, "%cluster_ctaid.x": 0, "%cluster_nctaid.y": 1, "%cluster_ctarank": 0,
    "%cluster_nctarank": 1, "%nclusterid.x": 3, "%nclusterid.z": 1, "%clusterid.y": 0, "%nwarpid": 2,
    "%envreg0": 0, "%envreg31": 0, "%reserved_smem_offset_begin": 0, "%reserved_smem_offset_end": 288,
    "%reserved_smem_offset_cap": 1024, "%reserved_smem_offset_0": 0, "%reserved_smem_offset_1": 0,
    "%total_smem_size": 256 + 96, "%dynamic_smem_size": 96,
}  # fmt: skip
GRID, BLOCK, DYNAMIC = 3, 48, 96


def run(body: str, block: tuple[int, ...] = (BLOCK,)) -> np.ndarray:
    """Each thread's two words %r1 and %r2, block after block."""
    threads = int(np.prod(block))
    text = f"""{HEADER}.shared .align 4 .b8 tile[256];
.entry k(.param .u64 out)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;
mov.u32 %r0, %tid.z; mov.u32 %r4, %ntid.y; mov.u32 %r5, %tid.y; mad.lo.u32 %r0, %r0, %r4, %r5;
mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.u32 %r0, %r0, %r4, %r5;
mov.u32 %r4, %ctaid.x; mad.lo.u32 %r0, %r4, {threads}, %r0;
ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r0, 8, %d0; mov.u32 %r1, 0; mov.u32 %r2, 0;
{body}
st.global.v2.b32 [%d0], {{%r1, %r2}}; ret;
}}
"""
    return run_both(text, "k", GRID, block, np.zeros((GRID * threads, 2), np.uint32), shared_bytes=DYNAMIC).arrays[0]


def read(special: Special) -> str:
    """Its value, in %r1 and %r2."""
    if special.type is PRED:
        return f"mov.pred %p1, {special.name}; selp.b32 %r1, 1, 0, %p1;"
    if special.type.bits == 64:
        return f"mov.u64 %d1, {special.name}; mov.b64 {{%r1, %r2}}, %d1;"
    return f"mov.u32 %r1, {special.name};"


@pytest.mark.parametrize("block", [(32, 2, 2), (16, 4, 2)], ids=["warps in rows", "warps over rows"])
@pytest.mark.parametrize("special", SPECIALS.values(), ids=SPECIALS)
def test_each_of_the_table(special: Special, block: tuple[int, int, int]) -> None:
    """Both executors know it, of its type, and it differs among the lanes of a warp as its row says."""
    assert is_special(special.name)
    steps = np.diff(run(read(special), block)[:, 0].reshape(-1, 32).astype(np.int64), axis=1)
    in_rows = block[0] == 32
    match special.varies:
        case Varies.LANE:
            assert (steps != 0).all()
        case Varies.ROW:
            assert (steps == 0).all() == (in_rows or special.name == "%tid.z")
        case Varies.ALONG_ROW:
            assert (steps == 1).all() == in_rows
        case Varies.BY_LANE:
            assert (steps == 1).all()
        case Varies.UNIFORM | Varies.CLOCK:  # lanes that read a clock together read the same
            assert (steps == 0).all()


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    assert (run(f"mov.u32 %r1, {name};")[:, 0] == WORDS[name]).all()


def test_a_cluster_is_a_block() -> None:
    found = run("mov.u32 %r1, %clusterid.x; mov.u32 %r2, %ctaid.x;")
    assert (found[:, 0] == np.repeat(np.arange(GRID), BLOCK)).all()
    assert (found[:, 0] == found[:, 1]).all()


def test_the_grid_and_whether_there_are_clusters() -> None:
    found = run(
        "mov.u64 %d1, %gridid; cvt.u32.u64 %r1, %d1; mov.pred %p1, %is_explicit_cluster; selp.b32 %r2, 7, 8, %p1;"
    )
    assert (found == [0, 8]).all()


@pytest.mark.parametrize(("first", "second"), [("%clock64", "%clock64"), ("%globaltimer", "%clock64")])
def test_clocks_never_stand_still(first: str, second: str) -> None:
    found = run(f"mov.u64 %d1, {first}; mov.u64 %d2, {second}; sub.u64 %d2, %d2, %d1; cvt.u32.u64 %r1, %d2;")
    assert (found[:, 0] > 0).all()


def test_the_halves_of_a_clock() -> None:
    found = run(
        "mov.u32 %r1, %clock; mov.u32 %r2, %clock; setp.gt.u32 %p1, %r2, %r1; mov.u32 %r2, %globaltimer_hi;"
        "@!%p1 mov.u32 %r2, 1;"
    )
    assert (found[:, 0] > 0).all()
    assert (found[:, 1] == 0).all()


def test_lanes_that_part_read_the_clock_one_after_another() -> None:
    found = run("""setp.lt.u32 %p1, %r0, 7; @%p1 bra low; mov.u32 %r1, %clock; bra.uni join;
        low: mov.u32 %r1, %clock; join: mov.u32 %r2, %clock;""")
    assert (found[:, 1] > found[:, 0]).all()
    assert set(found[:7, 0].tolist()).isdisjoint(found[7:32, 0].tolist())


def test_a_wait_for_a_clock_ends() -> None:
    found = run("""mov.u64 %d1, %clock64; wait: mov.u64 %d2, %clock64; sub.u64 %d2, %d2, %d1;
        setp.lt.u64 %p1, %d2, 10000; @%p1 bra wait; cvt.u32.u64 %r1, %d2;""")
    assert (found[:, 0] >= 10000).all()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("mov.u32 %r1, %pm0;", UnsupportedFeature, "special register %pm0"),
        ("mov.u32 %r1, %aggr_smem_size;", UnsupportedFeature, "special register %aggr_smem_size"),
        ("mov.u32 %r1, %clock64;", PtxSyntaxError, "%clock64 is not a register that can be used here"),
        ("mov.u32 %r1, %is_explicit_cluster;", PtxSyntaxError, "%is_explicit_cluster is not a register"),
    ],
)
def test_what_cannot_be_read(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(text)
