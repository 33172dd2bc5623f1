"""mbarriers in PTX by hand, on both executors: what is expected is written out here, by the manual (9.7.13.15)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from both import Array, Outcome, run_both

from triptych.core.errors import BarrierMisuse, BudgetExceeded, DeadlockError, MemoryFault, UnsupportedInstruction
from triptych.core.settings import scope
from triptych.gpu.isa import find_form

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
THREADS = 64


def kernel(body: str) -> str:
    """%r1 is the thread, %r2 and %d3 the address of an mbarrier (shared, and generic), %d1 the thread's result; %r0 is
    what the launch gives."""
    return f"""{HEADER}.entry k(.param .u64 out, .param .u32 which)
{{
.reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %d<20>;
.shared .align 8 .b64 bars[4];
mov.u32 %r1, %tid.x; mov.u32 %r2, bars; cvt.u64.u32 %d3, %r2; cvta.shared.u64 %d3, %d3;
mov.u32 %r8, %ctaid.x; mov.u32 %r9, %ntid.x; mad.lo.u32 %r8, %r8, %r9, %r1;
ld.param.u32 %r0, [which]; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r8, 4, %d1;
{body}
ret;
}}
"""


def launch(
    body: str, threads: int = THREADS, *, grid: int = 1, cluster: int = 1, only: str = "", which: int = 0
) -> Outcome:
    out = np.zeros(grid * threads, np.uint32)
    return run_both(kernel(body), "k", grid, threads, out, np.uint32(which), cluster=cluster, only=only)


def choose(bodies: Iterable[str]) -> str:
    """Of several bodies the one of number %r0: one kernel for them all."""
    return "\n".join(
        f"setp.ne.u32 %p5, %r0, {place}; @%p5 bra SKIP{place}; {{ {body} ret; }} SKIP{place}:"
        for place, body in enumerate(bodies)
    )


def results(body: str, threads: int = THREADS, *, grid: int = 1, cluster: int = 1) -> Array:
    return launch(body, threads, grid=grid, cluster=cluster).arrays[0].reshape(grid, threads)


def init(count: int | str, place: str = "%r2") -> str:
    return f"setp.eq.u32 %p7, %r1, 0; @%p7 mbarrier.init.shared::cta.b64 [{place}], {count}; bar.sync 0;"


def wait(label: str, parity: int | str = 0, place: str = "%r2") -> str:
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p6, [{place}], {parity}; @!%p6 bra {label};"


# --- Counts ---------------------------------------------------------------------------------------------------------

ARRIVALS = {
    "mbarrier.arrive.b64 %d4, [%d3]": 1,
    "mbarrier.arrive.b64 _, [%d3]": 1,
    "mbarrier.arrive.shared.b64 %d4, [%r2], 3": 3,
    "mbarrier.arrive.shared::cta.b64 _, [%r2], 2": 2,
    "mbarrier.arrive.release.cta.shared::cta.b64 %d4, [%r2]": 1,
    "mbarrier.arrive.release.cluster.b64 %d4, [%d3], 5": 5,
    "mbarrier.arrive.relaxed.cluster.shared.b64 %d4, [%r2]": 1,
    "mbarrier.arrive.shared::cluster.b64 _, [%r2]": 1,
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2], 4": 4,
    "mbarrier.arrive.relaxed.cta.shared::cluster.b64 _, [%r2]": 1,
    "mbarrier.arrive.noComplete.b64 %d4, [%d3], 7": 7,
    "mbarrier.arrive.noComplete.release.cta.shared.b64 %d4, [%r2], 2": 2,
    "mbarrier.arrive.expect_tx.shared.b64 %d4, [%r2], 64": 1,
    "mbarrier.arrive.expect_tx.relaxed.cta.b64 %d4, [%d3], 0": 1,
    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r2], 16": 1,
    "mbarrier.arrive_drop.b64 %d4, [%d3]": 1,
    "mbarrier.arrive_drop.release.cta.shared.b64 %d4, [%r2], 3": 3,
    "mbarrier.arrive_drop.shared::cluster.b64 _, [%r2], 2": 2,
    "mbarrier.arrive_drop.noComplete.shared.b64 %d4, [%r2], 2": 2,
    "mbarrier.arrive_drop.expect_tx.release.cluster.shared::cluster.b64 _, [%r2], 4": 1,
    "mbarrier.expect_tx.b64 [%d3], 32": 0,
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], %r2": 0,
    "mbarrier.complete_tx.shared.b64 [%r2], 0": 0,
    "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r2], 64": 0,
    "cp.async.mbarrier.arrive.shared.b64 [%r2]": 0,
    "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2]": 1,
    "cp.async.mbarrier.arrive.noinc.b64 [%d3]": 1,
}
"""Forms, and by how much each lowers the pending arrivals."""


def test_what_each_form_leaves_pending() -> None:
    """A last arrival after each tells what was pending before it."""
    lines = [f"{init(1000)} setp.ne.u32 %p1, %r1, 0; @%p1 bra END;"]
    for place, form in enumerate(ARRIVALS):
        lines += [
            f"{form};", "mbarrier.arrive.shared.b64 %d5, [%r2];", "mbarrier.pending_count.b64 %r5, %d5;",
            f"st.global.u32 [%d1+{4 * place}], %r5;",
        ]  # fmt: skip
    found = results("\n".join([*lines, "END:"]))[0, : len(ARRIVALS)]
    spent = np.cumsum(list(ARRIVALS.values())) + np.arange(len(ARRIVALS))
    np.testing.assert_array_equal(found, 1000 - spent)


def test_lanes_of_a_warp_arrive_one_after_the_other() -> None:
    body = f"{init(200)} mbarrier.arrive.shared.b64 %d4, [%r2], 2; mbarrier.pending_count.b64 %r5, %d4;"
    found = results(f"{body} st.global.u32 [%d1], %r5;")
    np.testing.assert_array_equal(found[0], 200 - 2 * np.arange(THREADS))


# --- Phases ---------------------------------------------------------------------------------------------------------


def told_by(*states: str) -> str:
    """Each result into a bit of %r5, in order."""
    forms = (
        f"mbarrier.test_wait.shared.b64 %p1, [%r2], {state}" if state.startswith("%d")
        else f"mbarrier.test_wait.parity.shared.b64 %p1, [%r2], {state}" for state in states
    )  # fmt: skip
    return " ".join(f"{form}; shl.b32 %r5, %r5, 1; @%p1 or.b32 %r5, %r5, 1;" for form in forms)


STEPS = (
    # init 2: phase 0 goes on, the phase before it (odd) has ended
    (told_by("0", "1"), "01"),
    ("mov.u32 %r7, -1; " + told_by("2", "5", "%r7"), "011"),  # the lowest bit is asked for, as ptxas makes of it
    ("mbarrier.arrive.shared.b64 %d4, [%r2]; " + told_by("%d4", "0", "1"), "001"),
    ("mbarrier.arrive.shared.b64 %d5, [%r2]; " + told_by("%d4", "%d5", "0", "1"), "1110"),  # phase 1
    ("mbarrier.arrive.expect_tx.shared.b64 %d4, [%r2], 100; " + told_by("%d4", "0", "1"), "010"),
    ("mbarrier.arrive.shared.b64 %d5, [%r2]; " + told_by("%d4", "1"), "00"),  # bytes are awaited still
    ("mbarrier.complete_tx.relaxed.cta.shared.b64 [%r2], 60; " + told_by("%d4", "1"), "00"),
    ("mbarrier.complete_tx.relaxed.cta.shared.b64 [%r2], 40; " + told_by("%d4", "0", "1"), "101"),  # phase 2
    ("mbarrier.complete_tx.relaxed.cta.shared.b64 [%r2], 8; " + told_by("0"), "0"),  # before they are expected
    ("mbarrier.arrive.shared.b64 _, [%r2]; mbarrier.arrive.shared.b64 %d4, [%r2]; " + told_by("%d4", "0"), "00"),
    ("mbarrier.expect_tx.relaxed.cta.shared.b64 [%r2], 8; " + told_by("%d4", "0", "1"), "110"),  # phase 3
    ("mbarrier.arrive_drop.shared.b64 _, [%r2]; mbarrier.arrive.shared.b64 _, [%r2]; " + told_by("1", "0"), "10"),
    ("mbarrier.arrive.shared.b64 %d4, [%r2]; " + told_by("%d4", "0"), "11"),  # phase 4 waited for one only
    ("mbarrier.inval.shared.b64 [%r2]; mbarrier.init.shared.b64 [%r2], 1; " + told_by("0", "1"), "01"),
)
"""What is done, and what tests say then."""


def test_phases_end_with_all_arrivals_and_transactions() -> None:
    body = f"{init(2)} setp.ne.u32 %p1, %r1, 0; @%p1 bra END;\n"
    for place, (step, _) in enumerate(STEPS):
        body += f"mov.u32 %r5, 1; {step} st.global.u32 [%d1+{4 * place}], %r5;\n"
    found = results(f"{body} END:")[0, : len(STEPS)]
    assert [f"{bits:b}"[1:] for bits in found.tolist()] == [told for _, told in STEPS]


WAITS = (
    "mbarrier.test_wait.b64 %p6, [%d3], %d4", "mbarrier.test_wait.acquire.cluster.shared::cta.b64 %p6, [%r2], %d4",
    "mbarrier.try_wait.shared.b64 %p6, [%r2], %d4", "mbarrier.try_wait.relaxed.cta.shared.b64 %p6, [%r2], %d4, 100",
    "mbarrier.try_wait.acquire.cta.b64 %p6, [%d3], %d4, %r1",
    "mbarrier.test_wait.parity.acquire.cta.shared.b64 %p6, [%r2], 0", "mbarrier.try_wait.parity.b64 %p6, [%d3], 0",
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p6, [%r2], %r7, 10000000",
)  # fmt: skip


def test_forms_of_waits() -> None:
    """Each wait is for an mbarrier of its own, at which the last thread arrives late; results are seen behind it."""
    body = f"{init(THREADS)} mov.u32 %r7, 0; mov.u32 %r6, 0;\n"
    for place, form in enumerate(WAITS):
        body += f"""bar.sync 0; st.global.u32 [%d1], %r6; bar.sync 0; {init(THREADS)}
mbarrier.arrive.shared.b64 %d4, [%r2]; L{place}: {form}; @!%p6 bra L{place};
xor.b32 %r10, %r1, 32; sub.u32 %r10, %r10, %r1; mad.wide.s32 %d6, %r10, 4, %d1;
ld.relaxed.gpu.global.u32 %r11, [%d6]; setp.eq.u32 %p2, %r11, %r6; @%p2 add.u32 %r6, %r6, 1;
"""
    found = results(f"{body} bar.sync 0; st.global.u32 [%d1], %r6;")
    assert (found == len(WAITS)).all()


def test_a_pipeline_of_warps() -> None:
    """Warp 0 fills a slot when warp 1 has emptied it, twenty times: full and empty mbarriers, by parity."""
    body = f"""
.shared .align 4 .b32 slot[32];
{init(32)} {init(32, "%r2+8")}
shl.b32 %r4, %r1, 2; and.b32 %r4, %r4, 127; mov.u32 %r3, slot; add.u32 %r4, %r4, %r3;
mov.u32 %r5, 0; mov.u32 %r6, 0; setp.ge.u32 %p1, %r1, 32;
NEXT: and.b32 %r7, %r5, 1; @%p1 bra CONSUMER;
xor.b32 %r10, %r7, 1; {wait("EMPTY", "%r10", "%r2+8")}
mad.lo.u32 %r11, %r5, 100, %r1; st.shared.u32 [%r4], %r11; mbarrier.arrive.shared.b64 _, [%r2]; bra DONE;
CONSUMER: {wait("FULL", "%r7")}
ld.shared.u32 %r11, [%r4]; mad.lo.u32 %r6, %r6, 3, %r11; mbarrier.arrive.shared.b64 _, [%r2+8];
DONE: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 20; @%p2 bra NEXT;
st.global.u32 [%d1], %r6;"""
    found = results(body)[0]
    expected = np.zeros(32, np.uint32)
    for step in range(20):
        expected = expected * np.uint32(3) + np.uint32(100 * step) + np.arange(32, dtype=np.uint32)
    np.testing.assert_array_equal(found, np.concatenate([np.zeros(32, np.uint32), expected]))


def test_lanes_of_one_warp_wait_for_others_of_it() -> None:
    """The upper lanes wait for what the lower ones do behind the loop."""
    body = f"""{init(16)} setp.lt.u32 %p1, %r1, 16; @%p1 bra LOWER;
{wait("WAIT")} ld.shared.u32 %r5, [bars+8]; bra END;
LOWER: mov.u32 %r5, 7; st.shared.u32 [bars+8], %r5; mbarrier.arrive.shared.b64 _, [%r2];
END: st.global.u32 [%d1], %r5;"""
    assert (results(body, 32) == 7).all()


@pytest.mark.parametrize(
    "arrive",
    [
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10]", "mbarrier.arrive.b64 _, [%d5]",
        "mbarrier.arrive_drop.shared::cluster.b64 _, [%r10], 1",
    ],
)  # fmt: skip
def test_arrivals_at_other_blocks_of_a_cluster(arrive: str) -> None:
    """All blocks arrive at the next one's mbarrier, and wait at their own; what they told it before is there then."""
    body = f"""{init(THREADS)} mov.u32 %r3, %cluster_ctarank; add.u32 %r4, %r3, 1; and.b32 %r4, %r4, 1;
mapa.shared::cluster.u32 %r10, %r2, %r4; mapa.u64 %d5, %d3, %r4;
barrier.cluster.arrive; barrier.cluster.wait;
mad.lo.u32 %r11, %r3, 1000, %r1; setp.eq.u32 %p1, %r1, 9; @%p1 st.shared::cluster.u32 [%r10+16], %r11;
{arrive}; {wait("WAIT")} ld.shared.u32 %r5, [%r2+16]; st.global.u32 [%d1], %r5;
barrier.cluster.arrive; barrier.cluster.wait;"""
    found = results(body, grid=4, cluster=2)
    np.testing.assert_array_equal(found[:, 0], [1009, 9, 1009, 9])
    assert (found == found[:, :1]).all()


# --- What is not there ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "opcode",
    [
        "mbarrier.init.shared::cluster.b64", "mbarrier.inval.shared::cluster.b64", "mbarrier.arrive.release.shared.b64",
        "mbarrier.arrive.cta.shared.b64", "mbarrier.arrive.acquire.cta.shared.b64", "mbarrier.arrive.release.gpu.b64",
        "mbarrier.arrive.noComplete.relaxed.cta.shared.b64", "mbarrier.arrive.noComplete.shared::cluster.b64",
        "mbarrier.expect_tx.release.cta.shared.b64", "mbarrier.expect_tx.relaxed.shared.b64",
        "mbarrier.test_wait.shared::cluster.b64", "mbarrier.try_wait.acquire.shared.b64", "mbarrier.arrive.shared.u64",
        "mbarrier.try_wait.release.cta.shared.b64", "cp.async.mbarrier.arrive.shared::cluster.b64",
    ],
)  # fmt: skip
def test_opcodes_that_ptxas_refuses(opcode: str) -> None:
    mnemonic, *modifiers = opcode.split(".")
    assert find_form(mnemonic, tuple(modifiers)) is None


def test_remote_arrivals_give_no_state() -> None:
    with pytest.raises(UnsupportedInstruction, match="its first operand must be '_'"):
        launch("mbarrier.arrive.shared::cluster.b64 %d4, [%r2];")


# --- Faults ---------------------------------------------------------------------------------------------------------

ALONE = f"{init(4)} setp.ne.u32 %p1, %r1, 37; @%p1 ret;"
"""Thread 37 goes on alone."""
FAULTS = {
    "": ("mbarrier.arrive.shared.b64 _, [%r2+8];", BarrierMisuse, "at address 0x8 of shared memory was never init"),
    "zeros": (
        "mov.u64 %d4, 0; st.shared.u64 [%r2+8], %d4; mbarrier.arrive.shared.b64 _, [%r2+8];", BarrierMisuse,
        "was never initialised, or was overwritten",
    ),
    "test": ("mbarrier.test_wait.parity.shared.b64 %p2, [%r2+16], 0;", BarrierMisuse, "0x10 of shared memory was"),
    "inval": ("mbarrier.inval.b64 [%d3]; mbarrier.arrive.b64 _, [%d3];", BarrierMisuse, "invalidated by mbarrier.inv"),
    "twice": ("mbarrier.inval.shared.b64 [%r2]; mbarrier.inval.shared.b64 [%r2];", BarrierMisuse, "was invalidated"),
    "none": ("mbarrier.inval.shared.b64 [%r2+8];", BarrierMisuse, "was never initialised"),
    "zero": ("mbarrier.init.shared.b64 [%r2], 0;", BarrierMisuse, "a count of arrivals that is not 1 to 1048575"),
    "large": ("mbarrier.init.shared.b64 [%r2], 1048576;", BarrierMisuse, "a count of arrivals that is not 1 to"),
    "no arrival": ("mbarrier.arrive.shared.b64 _, [%r2], 0;", BarrierMisuse, "a count of arrivals that is not 1 to"),
    "many": (
        "mbarrier.arrive.shared.b64 _, [%r2], 3; mbarrier.arrive.shared.b64 _, [%r2], 2;", BarrierMisuse,
        "gets more arrivals than it waits for: its phase still expects 1 of 4 arrivals",
    ),
    "drop": ("mbarrier.arrive_drop.shared.b64 _, [%r2], 5;", BarrierMisuse, "still expects 4 of 4 arrivals"),
    "last": (
        "mbarrier.arrive.noComplete.shared.b64 %d4, [%r2], 4;", BarrierMisuse, "would end its phase by an arrival with"
    ),
    "bytes": (
        "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r2], 1048575; mbarrier.expect_tx.shared.b64 [%r2], 1;",
        BarrierMisuse, "gets a tx-count beyond 1048575; it is 1048575",
    ),
    "too many bytes": ("mbarrier.complete_tx.shared.b64 [%r2], 1048576;", BarrierMisuse, "gets a tx-count beyond"),
    "misaligned": ("mbarrier.arrive.shared.b64 _, [%r2+4];", MemoryFault, "address 0x4 is misaligned: a multiple of 8"),
    "beyond": ("mbarrier.arrive.shared.b64 _, [%r2+32];", MemoryFault, "address 0x20 is out of bounds"),
    "global": ("mbarrier.arrive.b64 _, [%d1];", MemoryFault, "is none of shared memory"),
    "remote": (
        "mapa.u64 %d4, %d3, 1; mbarrier.test_wait.parity.b64 %p2, [%d4], 0;", MemoryFault, "address 0x2000000 is out of"
    ),
    "no rank": (
        "mapa.shared::cluster.u32 %r4, %r2, 2; mbarrier.arrive.shared::cluster.b64 _, [%r4];", MemoryFault, "rank 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_named(case: str) -> None:
    _, kind, message = FAULTS[case]
    body = f"{ALONE} {choose(statement for statement, _, _ in FAULTS.values())}"
    for only in ("generated", "oracle"):
        with pytest.raises(kind) as caught:
            launch(body, grid=2, cluster=2, only=only, which=list(FAULTS).index(case))
        if only == "generated":
            assert message in str(caught.value)
            assert "by thread (37,0,0) in block (0,0,0)" in str(caught.value)
            assert (caught.value.kernel, caught.value.thread) == ("k", (37, 0, 0))
            assert caught.value.where is not None


# --- Nobody comes ---------------------------------------------------------------------------------------------------

STUCK = {
    "nobody arrives": (init(1) + wait("L"), "64 threads loop at 'mbarrier.try_wait.parity.shared::cta.b64'"),
    "some do": (
        f"{init(64)} setp.lt.u32 %p1, %r1, 60; @%p1 mbarrier.arrive.shared.b64 _, [%r2]; {wait('L')}",
        "64 threads loop at 'mbarrier.try_wait",
    ),
    "the next phase": (
        f"{init(64)} mbarrier.arrive.shared.b64 _, [%r2]; {wait('L')} {wait('M', 1)}", "64 threads loop"
    ),
    "bytes": (
        f"{init(64)} mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 4; mbarrier.complete_tx.shared.b64 [%r2], 3;"
        f"{wait('L')}", "64 threads loop",
    ),
    "at two places": (
        f"{init(1)} setp.ge.u32 %p1, %r1, 40; @!%p1 bra L; bar.sync 1; ret; {wait('L')}",
        "24 threads wait at 'bar.sync' (barrier 1: 24 threads of the block have arrived)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STUCK)
def test_a_phase_that_never_ends_is_a_deadlock(case: str) -> None:
    """It is told at once, not only where the budget is used up, and says who waits where."""
    body, which = choose(body for body, _ in STUCK.values()), list(STUCK).index(case)
    with scope(budget=1 << 40), pytest.raises(DeadlockError) as caught:
        launch(body, only="generated", which=which)
    assert "threads of block (0,0,0) wait for each other and none can go on" in str(caught.value)
    assert STUCK[case][1] in str(caught.value)
    with scope(budget=1 << 10), pytest.raises((BudgetExceeded, DeadlockError)):
        launch(body, only="oracle", which=which)


def test_the_lowest_block_that_cannot_go_on_is_told() -> None:
    body = f"mov.u32 %r3, %ctaid.x; setp.lt.u32 %p1, %r3, 3; @%p1 bra END; {init(1)} {wait('L')} END:"
    with scope(workers=2), pytest.raises(DeadlockError, match=r"threads of block \(3,0,0\) wait for each other"):
        launch(body, grid=8, only="generated")


def test_a_loop_that_counts_its_tries_comes_to_an_end() -> None:
    """It waits for nobody who comes, but not for ever."""
    body = f"""{init(1)} mov.u32 %r5, 0;
L: mbarrier.try_wait.parity.shared.b64 %p6, [%r2], 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 200;
@%p6 bra D; @%p1 bra L;
D: st.global.u32 [%d1], %r5;"""
    assert (results(body, 32) == 200).all()


@pytest.mark.parametrize(("waiting_warp", "looks"), [(0, 2), (1, 1)])
def test_instructions_that_only_wait_are_told_from_the_others(waiting_warp: int, looks: int) -> None:
    """The first warp runs first; while it waits, the other one arrives. A look is two instructions and two phases."""
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%r2];"
    body = f"""{init(32)} shr.u32 %r5, %r1, 5; setp.ne.u32 %p1, %r5, {waiting_warp}; @%p1 bra ARRIVE;
{wait("L")} bra END; ARRIVE: {arrive} END: st.global.u32 [%d1], %r5;"""
    arrays, counters = (found := launch(body)).arrays, found.counters
    assert arrays[0].tolist() == [0] * 32 + [1] * 32
    assert counters["waiting.instructions"] == 2 * looks
    assert counters["waiting.wavefronts"] == 2 * looks
