"""What generic addresses say of their space (`isspacep`), and addresses of 32 bits, on both executors."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

from triptych.core.errors import PtxSyntaxError, UnsupportedInstruction

SPACES = ("global", "const", "shared", "local", "param")
PLACES = {
    "array": ("add.u64 %a, %base, 0;", "global"),
    "variable": ("mov.u64 %a, counter; cvta.global.u64 %a, %a;", "global"),
    "constant": ("mov.u64 %a, table; cvta.const.u64 %a, %a;", "const"),
    "the last byte of a constant": ("mov.u64 %a, table; cvta.const.u64 %a, %a; add.u64 %a, %a, 11;", "const"),
    "another constant": ("mov.u64 %a, pi; cvta.const.u64 %a, %a;", "const"),
    "behind a constant": ("mov.u64 %a, table; cvta.const.u64 %a, %a; add.u64 %a, %a, 12;", "global"),
    "before a constant": ("mov.u64 %a, table; cvta.const.u64 %a, %a; sub.u64 %a, %a, 1;", "global"),
    "shared memory": ("mov.u64 %a, tile; cvta.shared.u64 %a, %a;", "shared"),
    "local memory": ("mov.u64 %a, own; cvta.local.u64 %a, %a;", "local"),
    "a parameter": ("mov.u64 %a, out; cvta.param.u64 %a, %a;", "param"),
    "nowhere": ("mov.u64 %a, 0;", "global"),
}


def kernel(body: str, registers: str = "") -> str:
    return f"""{HEADER}.const .align 4 .b32 table[3] = {{1, 2, 3}}; .const .f32 pi = 0f40490FDB; .global .u32 counter;
.visible .entry k(.param .u64 out)
{{
.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %a, %base, %to; .shared .b32 tile[4]; .local .b32 own[4]; {registers}
ld.param.u64 %base, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %to, %r0, 32, %base;
{body}
ret; }}
"""


@pytest.mark.parametrize("place", PLACES)
def test_an_address_lies_in_one_space(place: str) -> None:
    code, wanted = PLACES[place]
    tests = "".join(
        f"isspacep.{space} %p, %a; selp.u32 %r1, 1, 0, %p; st.global.u32 [%to+{4 * index}], %r1;\n"
        for index, space in enumerate(SPACES)
    )
    (found,) = run_both(kernel(code + tests), "k", 1, 2, np.full((2, 8), 9, np.uint32)).arrays
    assert [space for space, inside in zip(SPACES, found[1], strict=False) if inside] == [wanted]
    assert (found[0] == found[1]).all()


def test_addresses_of_32_bits_have_zeros_above() -> None:
    tests = "".join(
        f"isspacep.{space} %p, %r2; selp.u32 %r1, 1, 0, %p; st.global.u32 [%to+{4 * index}], %r1;\n"
        for index, space in enumerate(SPACES)
    )
    (found,) = run_both(kernel(f"mov.u32 %r2, tile;{tests}"), "k", 1, 1, np.full((1, 8), 9, np.uint32)).arrays
    assert found[0, :5].tolist() == [1, 0, 0, 0, 0]


def test_the_lower_half_of_an_address_of_shared_memory_names_a_block() -> None:
    body = """mov.u32 %r1, tile; add.u32 %r1, %r1, 8; mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1;
mov.u64 %a, tile; cvta.shared.u64 %a, %a; add.u64 %a, %a, 8; cvt.u32.u64 %r6, %a;
mapa.u32 %r2, %r6, %r5; mapa.shared::cluster.u32 %r3, %r1, %r5; sub.u32 %r4, %r2, %r3; getctarank.u32 %r3, %r2;
mapa.u64 %a, %a, %r5; cvt.u32.u64 %r6, %a; sub.u32 %r6, %r6, %r2; mov.u32 %r0, %ctaid.x;
mad.wide.u32 %to, %r0, 32, %base;
st.global.v4.u32 [%to], {%r4, %r3, %r6, %r5};"""
    (found,) = run_both(kernel(body), "k", 2, 1, np.full((2, 8), 9, np.uint32), cluster=2).arrays
    assert found[:, :4].tolist() == [[0, 1, 0, 1], [0, 0, 0, 0]]


def test_what_isspacep_does_not_take() -> None:
    for operand, error in (("table", PtxSyntaxError), ("%p", PtxSyntaxError)):
        with pytest.raises(error, match=r"'isspacep\.const'"):
            run_both(kernel(f"isspacep.const %p, {operand};"), "k", 1, 1, np.zeros(8, np.uint32))
    with pytest.raises(UnsupportedInstruction, match=r"'cvta\.shared\.u32' is not supported"):
        run_both(kernel("cvta.shared.u32 %r1, %r2;"), "k", 1, 1, np.zeros(8, np.uint32))
