"""`stmatrix`, `ldmatrix`, `movmatrix`: generated code = oracle = 8×8 matrices moved by numpy, as the manual says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from both import HEADER, run_both
from numpy.typing import NDArray

from triptych.core.errors import DivergentWarp, MemoryFault, PtxSyntaxError

Array = NDArray[Any]
PLACES = np.random.default_rng(5).permutation(40)[:32].astype(np.uint32)
"""Where the row of each lane lies, in rows of 16 bytes."""


def kernel(body: str, target: str = "sm_90") -> str:
    """Lane l has %r0 = l, %r1 … %r4 = words of `words`, %r5 = the address of its row in a tile of 40."""
    loads = "\n".join(f"ld.global.b32 %r{1 + i}, [%d0+{128 * i}];" for i in range(4))
    stores = "\n".join(f"st.global.b32 [%d1+{128 * i}], %r{1 + i};" for i in range(4))
    return f"""{HEADER.replace("sm_90", target)}
.shared .align 16 .b8 tile[640];
.visible .entry k(.param .u64 words, .param .u64 places, .param .u64 out, .param .u64 memory) {{
.reg .b32 %r<16>; .reg .pred %p<4>; .reg .b64 %d<8>;
mov.u32 %r0, %tid.x;
ld.param.u64 %d0, [words]; mad.wide.u32 %d0, %r0, 4, %d0;
ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r0, 4, %d1;
ld.param.u64 %d2, [places]; mad.wide.u32 %d2, %r0, 4, %d2;
ld.param.u64 %d3, [memory]; mad.wide.u32 %d3, %r0, 20, %d3;
{loads}
ld.global.b32 %r6, [%d2];
mov.u32 %r5, tile; mad.lo.u32 %r5, %r6, 16, %r5;
mov.u32 %r7, tile; mad.lo.u32 %r7, %r0, 20, %r7;
mov.u32 %r8, 0;
{" ".join(f"st.shared.b32 [%r7+{4 * i}], %r8;" for i in range(5))}
bar.sync 0;
{body}
bar.sync 0;
{stores}
{" ".join(f"ld.shared.b32 %r8, [%r7+{4 * i}]; st.global.b32 [%d3+{4 * i}], %r8;" for i in range(5))}
ret; }}
"""


def run(body: str, words: Array, *, places: Array = PLACES, only: str = "") -> tuple[Array, Array]:
    """The registers and the tile, 40 rows of 8, afterwards."""
    given = (words, places, np.zeros((4, 32), np.uint32), np.zeros(160, np.uint32))
    outcome = run_both(kernel(body), "k", 1, 32, *given, only=only)
    return outcome.arrays[2], outcome.arrays[3].view(np.uint16).reshape(40, 8)


def random_words() -> Array:
    return np.random.default_rng(3).integers(0, 2**32, (4, 32), np.uint32)


def matrix(word: Array) -> Array:
    """Lane l holds elements 2(l mod 4) and the next of row l / 4."""
    elements = np.zeros((8, 8), np.uint16)
    for lane in range(32):
        elements[lane >> 2, 2 * (lane & 3)] = word[lane] & 0xFFFF
        elements[lane >> 2, 2 * (lane & 3) + 1] = word[lane] >> 16
    return elements


def registers(number: int) -> str:
    return "{" + ", ".join(f"%r{1 + i}" for i in range(number)) + "}"


@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
@pytest.mark.parametrize("transposed", ["", ".trans"])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_stmatrix(number: int, transposed: str, space: str) -> None:
    words, address = random_words(), "%r5"
    generic = "" if space else "cvt.u64.u32 %d4, %r5; cvta.shared.u64 %d4, %d4;"
    address = address if space else "%d4"
    body = f"{generic} stmatrix.sync.aligned.m8n8.x{number}{transposed}{space}.b16 [{address}], {registers(number)};"
    _, tile = run(body, words)
    wanted = np.zeros((40, 8), np.uint16)
    for i in range(number):
        stored = matrix(words[i])
        for row in range(8):
            wanted[PLACES[8 * i + row]] = (stored.T if transposed else stored)[row]
    np.testing.assert_array_equal(tile, wanted)


@pytest.mark.parametrize("transposed", ["", ".trans"])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_ldmatrix_gives_back_what_stmatrix_stored(number: int, transposed: str) -> None:
    words = random_words()
    clear = " ".join(f"mov.b32 %r{1 + i}, 0;" for i in range(4))
    tail = f".sync.aligned.m8n8.x{number}{transposed}.shared.b16"
    out, _ = run(
        f"stmatrix{tail} [%r5], {registers(number)}; {clear} ldmatrix{tail} {registers(number)}, [%r5];", words
    )
    np.testing.assert_array_equal(out[:number], words[:number])


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_of_a_known_tile(transposed: bool) -> None:
    words = random_words()
    load = f"ldmatrix.sync.aligned.m8n8.x4{'.trans' * transposed}.shared.b16 {registers(4)}, [%r5];"
    out, tile = run(f"st.shared.v4.b32 [%r5], {registers(4)}; bar.sync 0; {load}", words)
    for i in range(4):
        rows = tile[PLACES[8 * i : 8 * i + 8]]
        np.testing.assert_array_equal(matrix(out[i]), rows.T if transposed else rows)


def test_movmatrix() -> None:
    words = random_words()
    out, _ = run("movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;", words)
    np.testing.assert_array_equal(matrix(out[1]), matrix(words[0]).T)
    np.testing.assert_array_equal(out[0], words[0])


def test_stmatrix_counts_as_a_store_of_rows() -> None:
    words = random_words()
    body = f"stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {registers(2)};"
    given = (words, PLACES, np.zeros((4, 32), np.uint32), np.zeros(160, np.uint32))
    with_it = run_both(kernel(body), "k", 1, 32, *given).counters
    without = run_both(kernel(""), "k", 1, 32, *given).counters
    assert with_it["shared.store.requests"] - without["shared.store.requests"] == 1
    assert with_it["shared.store.bytes"] - without["shared.store.bytes"] == 16 * 16


FAULTS = {
    "out of bounds": ("mov.u32 %r5, 640;", MemoryFault, "__shared__"),
    "misaligned": ("add.u32 %r5, %r5, 4;", MemoryFault, "misaligned"),
    "some lanes": ("setp.lt.u32 %p1, %r0, 8; @%p1", DivergentWarp, "stmatrix"),
}


@pytest.mark.parametrize("only", ["generated", "oracle"])
@pytest.mark.parametrize(("before", "kind", "message"), FAULTS.values(), ids=FAULTS)
def test_faults(before: str, kind: type[Exception], message: str, only: str) -> None:
    with pytest.raises(kind, match=message):
        run(f"{before}\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {{%r1}};", random_words(), only=only)


def test_addresses_of_lanes_that_name_no_row_are_not_used() -> None:
    words = random_words()
    beyond = "setp.ge.u32 %p1, %r0, 16; @%p1 mov.u32 %r5, 0xFFFFFF0;"
    _, tile = run(f"{beyond} stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {{%r1, %r2}};", words)
    np.testing.assert_array_equal(tile[PLACES[3]], matrix(words[0])[3])


def test_stmatrix_is_sm_90s() -> None:
    text = kernel("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r1};", "sm_80")
    given = (random_words(), PLACES, np.zeros((4, 32), np.uint32), np.zeros(160, np.uint32))
    with pytest.raises(PtxSyntaxError, match=r"needs \.target sm_90 or higher"):
        run_both(text, "k", 1, 32, *given)
