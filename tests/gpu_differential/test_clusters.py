"""Clusters of blocks in PTX by hand: their shared memory, their barrier and their registers, on both executors.

What is expected is written out here: thread t of the block of rank r in cluster c is what the formulas name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
import pytest
from both import HEADER, Array, Grid, Outcome, run_both

from triptych.core.errors import BarrierMisuse, BudgetExceeded, DeadlockError, KernelFault, MemoryFault
from triptych.core.settings import scope

SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"
CLUSTERS, SIZE, THREADS = 3, 4, 64
BLOCKS = CLUSTERS * SIZE
NEXT = "add.u32 %r4, %r3, 1; and.b32 %r4, %r4, 3;"
"""%r4 = the rank of the next block of a cluster of four."""


def kernel(body: str) -> str:
    """%r1 is the thread, %r2 the block, %r3 its rank, %r5 and %d1 the thread's own word of `tile`, which holds 1000 ·
    rank + thread; what %r0 holds at the end is the thread's result, unless it has left before."""
    return f"""{HEADER}.entry k(.param .u64 out)
{{
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<10>; .reg .f32 %f<4>;
.shared .align 16 .b8 tile[{4 * THREADS}];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %cluster_ctarank;
mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6; cvt.u64.u32 %d1, %r5;
mad.lo.u32 %r7, %r3, 1000, %r1; st.shared.u32 [%r5], %r7;
mov.u32 %r0, 0;
{body}
mov.u32 %r8, %ntid.x; mad.lo.u32 %r8, %r2, %r8, %r1;
ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r8, 4, %d0; st.global.u32 [%d0], %r0;
ret;
}}
"""


def launch(body: str, cluster: Grid = (SIZE,), grid: Grid = (BLOCKS,), threads: int = THREADS) -> Outcome:
    count = int(np.prod(grid)) * threads
    return run_both(kernel(body), "k", grid, threads, np.zeros(count, np.uint32), cluster=cluster)


def results(body: str, cluster: Grid = (SIZE,), grid: Grid = (BLOCKS,), threads: int = THREADS) -> np.ndarray:
    return launch(body, cluster, grid, threads).arrays[0].reshape(-1, threads)


RANK = np.arange(BLOCKS)[:, None] % SIZE
THREAD = np.arange(THREADS)[None, :]
FOLLOWING = (RANK + 1) % SIZE

# --- Memory of other blocks -----------------------------------------------------------------------------------------

MAPPED = {
    "mapa.shared::cluster.u32": "mapa.shared::cluster.u32 %r10, %r5, %r4;",
    "mapa.shared::cluster.u64": "mapa.shared::cluster.u64 %d2, %d1, %r4; cvt.u32.u64 %r10, %d2;",
    "mapa.u64": "cvta.shared.u64 %d2, %d1; mapa.u64 %d2, %d2, %r4; cvta.to.shared::cluster.u64 %d2, %d2;"
    " cvt.u32.u64 %r10, %d2;",
    "of a variable": "mapa.shared::cluster.u32 %r10, tile, %r4; add.u32 %r10, %r10, %r6;",
}


@pytest.mark.parametrize("way", MAPPED)
def test_loads_of_the_next_block(way: str) -> None:
    found = launch(f"{NEXT} {MAPPED[way]} {SYNC} ld.shared::cluster.u32 %r0, [%r10]; {SYNC}")
    np.testing.assert_array_equal(found.arrays[0].reshape(BLOCKS, THREADS), 1000 * FOLLOWING + THREAD)
    warps = BLOCKS * THREADS // 32
    counted = {name: value for name, value in found.counters.items() if name.startswith("shared")}
    assert counted == {
        "shared.cluster.load.requests": warps, "shared.cluster.load.bytes": 4 * BLOCKS * THREADS,
        "shared.store.requests": warps, "shared.store.bytes": 4 * BLOCKS * THREADS, "shared.store.wavefronts": warps,
        "shared.store.bank_conflicts": 0,
    }  # fmt: skip
    assert found.counters["barriers"] == 4 * warps


LOADS: Mapping[str, Callable[[Array, Array], Array]] = {
    "ld.shared::cluster.u32 %r0, [%r10]": lambda r, t: 1000 * r + t,
    "ld.volatile.shared::cluster.u32 %r0, [%r10]": lambda r, t: 1000 * r + t,
    "ld.relaxed.cluster.shared::cluster.u32 %r0, [%r10]": lambda r, t: 1000 * r + t,
    "ld.acquire.gpu.shared::cluster.b32 %r0, [%r10]": lambda r, t: 1000 * r + t,
    "ld.shared::cluster.u8 %r0, [%r10]": lambda r, t: (1000 * r + t) & 0xFF,
    "ld.shared::cluster.s16 %r0, [%r10+2]": lambda r, t: 0 * (r + t),
    "and.b32 %r10, %r10, -8; ld.shared::cluster.v2.u32 {%r0, %r11}, [%r10]; add.u32 %r0, %r0, %r11": (
        lambda r, t: 2 * (1000 * r + (t & ~1)) + 1
    ),
    "ld.u32 %r0, [%d3]": lambda r, t: 1000 * r + t,
    "ld.volatile.u32 %r0, [%d3]": lambda r, t: 1000 * r + t,
    "ld.acquire.cluster.u32 %r0, [%d3]": lambda r, t: 1000 * r + t,
}


@pytest.mark.parametrize("load", LOADS)
def test_forms_of_loads(load: str) -> None:
    body = f"{NEXT} {MAPPED['mapa.u64']} cvta.shared::cluster.u64 %d3, %d2; {SYNC} {load}; {SYNC}"
    np.testing.assert_array_equal(results(body), LOADS[load](FOLLOWING, THREAD))


STORES = {
    "st.shared::cluster.u32 [%r10], %r7": 1000, "st.volatile.shared::cluster.u32 [%r10], %r7": 1000,
    "st.release.cluster.shared::cluster.u32 [%r10], %r7": 1000, "st.u32 [%d3], %r7": 1000,
    "red.shared::cluster.add.u32 [%r10], %r7": 2000, "red.release.cluster.shared::cluster.add.u32 [%r10], %r7": 2000,
    "red.add.u32 [%d3], %r7": 2000, "atom.shared::cluster.exch.b32 %r9, [%r10], %r7": 1000,
    "atom.acq_rel.cluster.add.u32 %r9, [%d3], %r7": 2000,
    "not.b32 %r9, 0; atom.shared::cluster.cas.b32 %r9, [%r10], %r9, %r7": 0,
}  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_forms_of_stores_and_atomics(store: str) -> None:
    """What the block before has left in the tile: its own word, the sum of both, or the one that was there."""
    before = (RANK - 1) % SIZE
    body = f"{NEXT} {MAPPED['mapa.u64']} cvta.shared::cluster.u64 %d3, %d2; {SYNC} {store}; {SYNC}"
    left = {1000: 1000 * before + THREAD, 2000: 1000 * (before + RANK) + 2 * THREAD, 0: 1000 * RANK + THREAD}
    np.testing.assert_array_equal(results(f"{body} ld.shared.u32 %r0, [%r5];"), left[STORES[store]])


def test_lanes_reach_for_blocks_of_their_own() -> None:
    """Lane by lane another block, by addresses that name none (the block's own) and that name it."""
    body = f"""and.b32 %r4, %r1, 3; mapa.shared::cluster.u32 %r10, %r5, %r4; setp.eq.u32 %p1, %r4, %r3;
    selp.b32 %r10, %r5, %r10, %p1; {SYNC} ld.shared::cluster.u32 %r0, [%r10]; {SYNC}"""
    np.testing.assert_array_equal(results(body), 1000 * (THREAD % 4) + THREAD + 0 * RANK)


def test_generic_addresses_of_everything() -> None:
    """A warp's lanes reach for global memory, their own and other blocks' shared memory in one request."""
    body = f"""and.b32 %r4, %r1, 3; cvta.shared.u64 %d2, %d1; mapa.u64 %d3, %d2, %r4;
    ld.param.u64 %d4, [out]; setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 1;
    selp.b64 %d3, %d4, %d3, %p1; selp.b64 %d3, %d2, %d3, %p2; {SYNC} ld.u32 %r0, [%d3]; {SYNC}"""
    found = launch(body)
    words = np.where(THREAD % 4 == 1, 1000 * RANK + THREAD, 1000 * (THREAD % 4) + THREAD)
    words = np.where(THREAD % 4 == 0, 0, words)
    np.testing.assert_array_equal(found.arrays[0].reshape(BLOCKS, THREADS), words)
    warps = BLOCKS * THREADS // 32
    kinds = ("global.load", "shared.load", "shared.cluster.load")
    assert [found.counters[f"{kind}.requests"] for kind in kinds] == [warps] * 3
    assert [found.counters[f"{kind}.bytes"] for kind in kinds] == [32 * warps, 32 * warps, 64 * warps]


@pytest.mark.parametrize("guard", ["@%p1", "@!%p1"])
def test_guarded_accesses_count_their_lanes(guard: str) -> None:
    body = f"{NEXT} {MAPPED['mapa.u64']} setp.lt.u32 %p1, %r1, 5; {SYNC} {guard} ld.shared::cluster.u32 %r0, [%r10];"
    found = launch(f"{body} {SYNC}")
    inside = (THREAD < 5) == (guard == "@%p1")
    expected = np.where(inside, 1000 * FOLLOWING + THREAD, 0)
    np.testing.assert_array_equal(found.arrays[0].reshape(BLOCKS, THREADS), expected)
    assert found.counters["shared.cluster.load.bytes"] == 4 * int(inside.sum()) * BLOCKS


def test_atomics_of_all_blocks_meet_in_one() -> None:
    body = f"""mov.u32 %r4, 0; mapa.shared::cluster.u32 %r10, %r5, %r4; {SYNC}
    red.shared::cluster.max.u32 [%r10], %r7; {SYNC} ld.shared::cluster.u32 %r0, [%r10]; {SYNC}"""
    np.testing.assert_array_equal(results(body), 3000 + THREAD + 0 * RANK)


# --- Addresses ------------------------------------------------------------------------------------------------------


def test_ranks_of_addresses() -> None:
    body = """and.b32 %r4, %r1, 3; mapa.shared::cluster.u32 %r10, %r5, %r4; getctarank.shared::cluster.u32 %r11, %r10;
    cvta.shared.u64 %d2, %d1; mapa.u64 %d3, %d2, %r4; getctarank.u64 %r12, %d3; getctarank.u64 %r13, %d2;
    getctarank.shared::cluster.u32 %r14, tile; cvt.u64.u32 %d4, %r10; getctarank.shared::cluster.u64 %r15, %d4;
    mad.lo.u32 %r0, %r11, 10, %r12; mad.lo.u32 %r0, %r0, 10, %r13; mad.lo.u32 %r0, %r0, 10, %r14;
    mad.lo.u32 %r0, %r0, 10, %r15;"""
    np.testing.assert_array_equal(results(body), THREAD % 4 * 11001 + RANK * 110)


def test_spaces_of_addresses() -> None:
    """The block's own window lies inside the cluster's, by whatever name its place goes."""
    body = """and.b32 %r4, %r1, 3; cvta.shared.u64 %d2, %d1; mapa.u64 %d3, %d2, %r4; ld.param.u64 %d4, [out];
    isspacep.shared::cta %p0, %d3; isspacep.shared::cluster %p1, %d3; isspacep.shared %p2, %d2;
    isspacep.shared::cluster %p3, %d4; selp.u32 %r9, 1, 0, %p0; selp.u32 %r10, 10, 0, %p1; selp.u32 %r11, 100, 0, %p2;
    selp.u32 %r12, 1000, 0, %p3; add.u32 %r0, %r9, %r10; add.u32 %r0, %r0, %r11; add.u32 %r0, %r0, %r12;
    isspacep.global %p0, %d3; selp.u32 %r9, 10000, 0, %p0; add.u32 %r0, %r0, %r9;"""
    np.testing.assert_array_equal(results(body), 110 + (THREAD % 4 == RANK))


def test_a_block_without_a_cluster_is_one() -> None:
    body = f"""mov.u32 %r4, 0; cvta.shared.u64 %d2, %d1; mapa.u64 %d3, %d2, %r4; {SYNC} ld.u32 %r0, [%d3];
    getctarank.u64 %r4, %d3; add.u32 %r0, %r0, %r4;"""
    np.testing.assert_array_equal(results(body, (1,)), THREAD + 0 * RANK)


# --- Registers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cluster", "grid"), [((2, 2, 1), (4, 6, 3)), ((1, 3, 2), (2, 3, 4)), ((1, 1, 1), (3, 2, 2))])
def test_places_in_the_cluster_and_the_grid(cluster: Grid, grid: Grid) -> None:
    vectors = ("ctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
    names = [f"%{vector}.{axis}" for vector in vectors for axis in "xyz"]
    names += ["%cluster_ctarank", "%cluster_nctarank"]
    digits = "".join(f"mov.u32 %r9, {name}; mad.lo.u32 %r0, %r0, 7, %r9;" for name in names[:8])
    more = "".join(f"mov.u32 %r9, {name}; mad.lo.u32 %r0, %r0, 7, %r9;" for name in names[8:])
    place = """mov.u32 %r9, %ctaid.z; mov.u32 %r10, %nctaid.y; mov.u32 %r11, %ctaid.y; mad.lo.u32 %r9, %r9, %r10, %r11;
    mov.u32 %r10, %nctaid.x; mad.lo.u32 %r2, %r9, %r10, %r2;"""
    explicit = "mov.pred %p1, %is_explicit_cluster; selp.u32 %r9, 1, 0, %p1; add.u32 %r0, %r0, %r9;"
    halves = [results(f"{part} {explicit} {place}", cluster, grid, 1)[:, 0] for part in (digits, more)]
    for number, (z, y, x) in enumerate(np.ndindex(*reversed(grid))):
        at = (x, y, z)
        first = [i // part for i, part in zip(at, cluster, strict=True)]
        within = [i % part for i, part in zip(at, cluster, strict=True)]
        clusters = [extent // part for extent, part in zip(grid, cluster, strict=True)]
        rank = within[0] + cluster[0] * (within[1] + cluster[1] * within[2])
        words = [*at, *first, *clusters, *within, *cluster, rank, int(np.prod(cluster))]
        for half, own in zip(halves, (words[:8], words[8:]), strict=True):
            value = 0
            for word in own:
                value = value * 7 + word
            assert half[number] == (value + (cluster != (1, 1, 1))) % 2**32


def test_each_block_of_the_grid_runs_once_in_a_cluster_of_sixteen() -> None:
    rank = "mov.u32 %r9, %clusterid.x; shl.b32 %r9, %r9, 4; add.u32 %r2, %r9, %r3; mov.u32 %r0, %r2;"
    found = results(rank, (2, 2, 4), (4, 2, 4), 32)
    np.testing.assert_array_equal(found, np.arange(32)[:, None] + np.zeros(32, np.uint32))


# --- The barrier ----------------------------------------------------------------------------------------------------

FORMS = [
    ("barrier.cluster.arrive;", "barrier.cluster.wait;"),
    ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
    ("barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"),
    ("barrier.cluster.arrive.relaxed; fence.acq_rel.cluster;", "barrier.cluster.wait.acquire;"),
]


@pytest.mark.parametrize(("arrive", "wait"), FORMS)
@pytest.mark.parametrize("workers", [1, 2])
def test_rounds_of_a_ring(arrive: str, wait: str, workers: int) -> None:
    """Each round passes the words on to the next block; work between arriving and waiting sees no new ones."""
    body = f"""{NEXT} mapa.shared::cluster.u32 %r10, %r5, %r4; mov.u32 %r9, 0; {arrive} {wait}
round: ld.shared.u32 %r11, [%r5]; {arrive} add.u32 %r0, %r0, %r11; {wait}
    st.shared::cluster.u32 [%r10], %r11; {arrive} {wait}
    add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 6; @%p1 bra round;"""
    with scope(workers=workers):
        found = results(body)
    np.testing.assert_array_equal(found, sum(1000 * ((RANK - step) % SIZE) + THREAD for step in range(6)))


def test_lanes_that_part_wait_at_places_of_their_own() -> None:
    body = f"""{NEXT} mapa.shared::cluster.u32 %r10, %r5, %r4; and.b32 %r9, %r1, 1; setp.eq.u32 %p1, %r9, 0; {SYNC}
    @%p1 bra even; barrier.cluster.arrive; ld.shared::cluster.u32 %r0, [%r10]; barrier.cluster.wait; bra both;
even: barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cluster.u32 %r0, [%r10]; add.u32 %r0, %r0, 1;
both: {SYNC}"""
    np.testing.assert_array_equal(results(body), 1000 * FOLLOWING + THREAD + (THREAD % 2 == 0))


def test_guarded_arrivals_and_waits() -> None:
    """Half of the threads arrive and wait at once, the others later, for the same completion."""
    body = f"""{NEXT} mapa.shared::cluster.u32 %r10, %r5, %r4; setp.lt.u32 %p1, %r1, 20;
    @%p1 barrier.cluster.arrive; @!%p1 barrier.cluster.arrive; @!%p1 barrier.cluster.wait; @%p1 barrier.cluster.wait;
    ld.shared::cluster.u32 %r0, [%r10]; {SYNC}"""
    np.testing.assert_array_equal(results(body), 1000 * FOLLOWING + THREAD)


LEAVE = ("setp.gt.u32 %p1, %r1, 40;", "setp.eq.u32 %p1, %r3, 2;", "setp.eq.u32 %p1, %r3, 0;")


@pytest.mark.parametrize("leaves", LEAVE)
def test_threads_that_have_ended_are_not_waited_for(leaves: str) -> None:
    """Some threads of each block, or a block whose memory nobody wants, leave without arriving."""
    body = f"{leaves} @%p1 ret; {SYNC} {SYNC} {SYNC} mov.u32 %r0, 7;"
    gone = {"gt": THREAD + 0 * RANK > 40, "eq": (int(leaves[-2]) == RANK) & (THREAD >= 0)}[leaves[5:7]]
    np.testing.assert_array_equal(results(body), np.where(gone, 0, 7))


def test_barriers_of_blocks_between_those_of_the_cluster() -> None:
    """Blocks of a cluster go through another number of barriers of their own."""
    body = f"""{NEXT} mapa.shared::cluster.u32 %r10, %r5, %r4; mov.u32 %r9, 0;
again: bar.sync 0; add.u32 %r9, %r9, 1; setp.le.u32 %p1, %r9, %r3; @%p1 bra again; st.shared.u32 [%r5], %r9; {SYNC}
    ld.shared::cluster.u32 %r0, [%r10]; {SYNC}"""
    np.testing.assert_array_equal(results(body), FOLLOWING + 1 + 0 * THREAD)


def test_waiting_for_another_block_in_a_loop() -> None:
    """Each block waits for a flag that the one before sets in its memory; the first sets off. How often they look is
    each executor's own."""
    body = f"""st.shared.u32 [%r5], 0; {NEXT} mapa.shared::cluster.u32 %r10, %r5, %r4; {SYNC}
    setp.eq.u32 %p1, %r3, 0; @%p1 bra set;
spin: ld.acquire.cluster.shared::cta.u32 %r0, [%r5]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin;
set: add.u32 %r9, %r0, 1; st.release.cluster.shared::cluster.u32 [%r10], %r9; {SYNC}"""
    given = np.zeros((BLOCKS, THREADS), np.uint32)
    found = run_both(kernel(body), "k", BLOCKS, THREADS, given, cluster=SIZE, counted=False)
    np.testing.assert_array_equal(found.arrays[0], RANK + 0 * THREAD)


# --- What goes wrong ------------------------------------------------------------------------------------------------


Fault = TypeVar("Fault", bound=KernelFault)


def fails(body: str, error: type[Fault], message: str, cluster: Grid = (SIZE,)) -> Fault:
    """Both executors refuse it; gives the generated code's error."""
    arrays = np.zeros(BLOCKS * THREADS, np.uint32)
    with pytest.raises(error, match=message) as caught:
        run_both(kernel(body), "k", BLOCKS, THREADS, arrays, cluster=cluster, only="generated")
    with pytest.raises(error):
        run_both(kernel(body), "k", BLOCKS, THREADS, arrays, cluster=cluster, only="oracle")
    return caught.value


MAP_OWN = "mapa.shared::cluster.u32 %r10, tile, %r4;"


def test_bounds_are_exact() -> None:
    last = f"mov.u32 %r4, 2; {MAP_OWN} {SYNC} ld.shared::cluster.u8 %r0, [%r10+255]; {SYNC}"
    assert (results(last) == 0).all()
    fault = fails(
        last.replace("+255", "+256"), MemoryFault,
        r"(?s)Invalid __shared::cluster__ read of size 1 bytes.*address 0x3000100 is out of bounds: the block of rank 2"
        " has 256 bytes of shared memory; the access is at 256",
    )  # fmt: skip
    assert (fault.access, fault.space, fault.address, fault.bytes) == ("load", "shared::cluster", 0x300_0100, 1)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ("st.shared::cluster.v2.u32 [%r10+256], {%r1, %r1}", "write of size 8 .*the block of rank 1 has 256 bytes"),
        ("atom.shared::cluster.add.u32 %r0, [%r10+1024], 1", "atomic of size 4 .*the block of rank 1 has 256 bytes"),
        ("ld.shared::cluster.u32 %r0, [%r10+2]", "is misaligned: a multiple of 4 is needed"),
        ("ld.shared::cluster.u32 %r0, [%r10+50331648]", "names the block of rank 4: the cluster has 4 blocks"),
        ("ld.shared::cluster.u32 %r0, [4096]", "the block itself has 256 bytes"),
        ("ld.shared.u32 %r0, [%r10]", "Invalid __shared__ read of size 4"),
    ],
)
def test_accesses_that_miss(access: str, message: str) -> None:
    fails(f"mov.u32 %r4, 1; {MAP_OWN} {SYNC} {access}; {SYNC}", MemoryFault, f"(?s){message}")


@pytest.mark.parametrize("rank", [4, 255, 256, 0xFFFF_FFFF])
def test_ranks_that_there_are_not(rank: int) -> None:
    for generic in (False, True):
        given = "cvta.shared.u64 %d2, %d1; mapa.u64 %d2, %d2, %r4;" if generic else MAP_OWN
        load = "ld.u32 %r0, [%d2];" if generic else "ld.shared::cluster.u32 %r0, [%r10];"
        fails(f"mov.u32 %r4, {rank}; {given} {load}", MemoryFault, f"names the block of rank {min(rank, 254)}: ")


def test_what_is_not_shared_memory_maps_to_none() -> None:
    body = "ld.param.u64 %d2, [out]; mov.u32 %r4, 1; mapa.u64 %d2, %d2, %r4; st.u32 [%d2], %r1;"
    fails(body, MemoryFault, "names the block of rank 254")


def test_the_only_block_of_a_cluster() -> None:
    fails(f"mov.u32 %r4, 1; {MAP_OWN} st.shared::cluster.u32 [%r10], 1;", MemoryFault, "has one block, of rank 0", (1,))


def test_the_memory_of_a_block_that_has_exited() -> None:
    """Hardware has given it to another block by then, or to none."""
    body = f"""setp.eq.u32 %p1, %r3, 3; @%p1 ret; {SYNC} {SYNC} mov.u32 %r4, 3; {MAP_OWN}
    ld.shared::cluster.u32 %r0, [%r10];"""
    fault = fails(body, MemoryFault, "is of the block of rank 3, which has exited")
    assert fault.hint == "let all blocks of the cluster meet at its barrier before any of them ends"
    assert fault.block is not None
    assert fault.block[0] < SIZE


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("barrier.cluster.wait;", r"'barrier\.cluster\.wait', PTX line \d+, waits though the thread has not arrived"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "arrives again before the thread has waited"),
        (f"{SYNC} barrier.cluster.wait;", "waits though the thread has not arrived"),
        (
            f"{SYNC} setp.eq.u32 %p1, %r1, 37; @%p1 barrier.cluster.arrive; barrier.cluster.arrive;",
            r"arrives again before the thread has waited, by thread \(37,0,0\) in block \([0-3],0,0\)",
        ),
    ],
)
def test_arrivals_and_waits_must_alternate(body: str, message: str) -> None:
    fails(body, BarrierMisuse, message)


def test_who_waits_for_whom() -> None:
    body = """setp.eq.u32 %p1, %r3, 1; @%p1 bra other; barrier.cluster.arrive; barrier.cluster.wait; bra end;
other: setp.lt.u32 %p2, %r1, 32; @%p2 bar.sync 5, 64; barrier.cluster.arrive; barrier.cluster.wait;
end:"""
    fault = fails(body, DeadlockError, "kernel k: threads of the cluster of block \\(0,0,0\\) wait for each other")
    places = fault.message.splitlines()[1:]
    assert places[0].startswith("  192 threads of 3 blocks wait at 'barrier.cluster.wait' (224 of the cluster's 256")
    assert "32 threads of 1 block wait at 'bar.sync' (barrier 5: 32 of 64 threads have arrived)" in fault.message


def test_a_block_that_waits_for_a_sibling_in_a_loop_for_ever() -> None:
    """It is no deadlock at a barrier: the block looks again and again."""
    body = f"""setp.ne.u32 %p1, %r3, 1; @%p1 bra meet;
spin: ld.volatile.shared.u32 %r9, [%r5]; setp.ne.u32 %p1, %r9, 77; @%p1 bra spin;
meet: {SYNC}"""
    given = np.zeros(SIZE * THREADS, np.uint32)
    with scope(budget=20_000), pytest.raises(BudgetExceeded, match="all threads wait for others") as caught:
        run_both(kernel(body), "k", SIZE, THREADS, given, cluster=SIZE, only="generated")
    assert "192 threads of 3 blocks wait at 'barrier.cluster.wait'" in caught.value.message
    assert "64 threads of 1 block loop at 'ld.volatile.shared.u32'" in caught.value.message


def test_the_lowest_cluster_with_a_fault_is_told_of() -> None:
    """Whatever the number of workers; clusters before it run to their end."""
    body = f"setp.eq.u32 %p1, %r2, 9; @%p1 trap; setp.eq.u32 %p1, %r2, 6; {SYNC} @%p1 trap; {SYNC} mov.u32 %r0, 1;"
    for workers in (1, 2, 3):
        with scope(workers=workers):
            assert fails(body, KernelFault, "trap executed").block == (6, 0, 0)
