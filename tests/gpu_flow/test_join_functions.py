"""Kernels joined with the functions that they call."""

from __future__ import annotations

import pytest

from triptych.core.errors import UnsupportedFeature
from triptych.gpu.flow import JoinedKernel, code_addresses, extend_liveness, find_links, find_liveness, join_functions
from triptych.gpu.isa.binding import bind
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Instruction

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
TWICE = """.func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; shl.b32 %x, %x, 1; st.param.b32 [r], %x; ret; }
"""
DECLARED = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .param .b32 a; .param .b32 b; .param .b64 c;"


def join(body: str, functions: str = TWICE) -> JoinedKernel:
    module = parse(f"{HEADER}{functions}\n.entry k(.param .u64 out)\n{{\n{DECLARED}\n{body}\n}}\n")
    return join_functions(module, module.functions["k"])


def texts(joined: JoinedKernel) -> list[list[str]]:
    return [
        [f"{'+' if i.added else ''}{i.opcode}" for i in block.instructions] for block in joined.ordered.graph.blocks
    ]


def test_a_kernel_without_calls_stays_as_it_is() -> None:
    module = parse(f"{HEADER}{TWICE}.entry k()\n{{\n{DECLARED}\nmov.u32 %r1, 1; ret;\n}}\n")
    joined = join_functions(module, module.functions["k"])
    assert joined.function is module.functions["k"]
    assert texts(joined) == [["mov.u32", "ret"]]
    assert find_links(joined.ordered.graph) == {}


def test_a_function_stands_once_before_its_callers() -> None:
    call = "st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r1, [b];"
    joined = join(f"{call} {call} ret;")
    graph = joined.ordered.graph
    assert texts(joined) == [
        [],
        ["ld.param::func.b32", "shl.b32", "st.param::func.b32", "ret"],
        ["+brx.idx"],
        ["st.param::func.b32", "+ld.param::func.b32", "+st.param::func.b32", "+mov.u32", "+mov.u32", "call"],
        [
            *("+ld.param::func.b32", "+st.param::func.b32", "ld.param::func.b32", "st.param::func.b32"),
            *("+ld.param::func.b32", "+st.param::func.b32", "+mov.u32", "+mov.u32", "call"),
        ],
        ["+ld.param::func.b32", "+st.param::func.b32", "ld.param::func.b32", "ret"],
    ]
    assert find_links(graph) == {2: (4, 5), 3: (1,), 4: (1,)}
    assert graph.successors[:6] == ((3,), (2,), (6,), (4,), (5,), (6,))
    assert not joined.has_stack


def test_what_is_passed_once_lies_where_the_function_has_it() -> None:
    joined = join("st.param.b32 [a], %r1; call (b), twice, (a); ld.param.b32 %r1, [b]; ret;")
    assert texts(joined)[3:] == [["st.param::func.b32", "+mov.u32", "+mov.u32", "call"], ["ld.param::func.b32", "ret"]]
    sizes = {v.name: v.count for v in joined.function.variables}
    assert sizes == {"&calls": 16, "&stack": 16}  # of the three, one is not passed


def test_what_callers_want_is_wanted_in_the_function() -> None:
    joined = join("mov.u32 %r2, 3; call (%r1), twice, (%r2); add.u32 %r1, %r1, %r2; st.param.b32 [a], %r1; ret;")
    graph = joined.ordered.graph
    links = find_links(graph)

    def uses(instruction: Instruction) -> frozenset[str]:
        return bind(instruction).uses

    def defines(instruction: Instruction) -> frozenset[str]:
        return bind(instruction).defines

    own = find_liveness(graph, uses, defines)
    whole = extend_liveness(graph, own, links)
    entry = links[3][0]
    assert own.live_in(entry) == {"&frame", "twice::&return"}
    assert whole.live_in(entry) == {"&frame", "twice::&return", "%r2"}
    assert whole.live_out(3) == whole.live_in(entry)
    assert "twice::&return" not in whole.live_in(0)


def test_recursion_saves_what_is_wanted_behind_the_call() -> None:
    function = """.func (.param .b32 r) down(.param .b32 n) {
    .reg .b32 %x, %y, %z; .reg .pred %p; .param .b32 a; .param .b32 b;
    ld.param.b32 %x, [n]; setp.gt.s32 %p, %x, 1; add.s32 %z, %x, 5; sub.s32 %y, %x, 1;
    st.param.b32 [a], %y; call (b), down, (a); ld.param.b32 %y, [b];
    @%p add.s32 %y, %y, %x; st.param.b32 [r], %y; ret; }"""
    joined = join("call (%r1), down, (4); ret;", function)
    assert joined.has_stack
    before, behind = texts(joined)[1:3]
    assert before[-8:] == [
        *("st.param::func.b32", "+st.param::func.b32", "+selp.b32", "+st.param::func.b32", "+st.param::func.b32"),
        *("+mov.u32", "+add.u32", "call"),
    ]
    assert behind[:6] == [
        *("+sub.u32", "+ld.param::func.b32", "+ld.param::func.b32", "+setp.ne.u32", "+ld.param::func.b32"),
        "ld.param::func.b32",
    ]


def test_addresses_of_functions() -> None:
    module = parse(
        f"{HEADER}{TWICE}{TWICE.replace('twice', 'other')}.entry k() {{ {DECLARED} mov.u64 %rd1, other; ret; }}"
    )
    addresses = code_addresses(module)
    assert addresses["other"] - addresses["twice"] == 16
    joined = join_functions(module, module.functions["k"])
    (move, _) = joined.ordered.graph.blocks[0].instructions
    assert str(addresses["other"]) in str(move.operands[1])


@pytest.mark.parametrize(
    ("body", "functions", "message"),
    [
        (
            "call nowhere;",
            ".extern .func nowhere();",
            "the function 'nowhere' is called (PTX line 8), which the module does not define",
        ),
        ("call twice, (a);", TWICE, "'call' passes another number of parameters than 'twice' takes (PTX line 10)"),
        ("call (b), twice, (c);", TWICE, "passes 8 bytes where 'twice' takes 4"),
        ("ld.param.b32 %r1, [a+4]; call (b), twice, (a);", TWICE, "'ld.param.b32' reaches byte 4 of 'a', which has 4"),
        ("call (b), %rd1, (a);", TWICE, "'call' takes results, a function, arguments, and for a pointer"),
        ("call (b), %rd1, (a), LIST; LIST: ret;", TWICE, "names 'LIST', which is no list of the function's"),
        (
            "call (%r1), f, (%r2);",
            ".func (.reg .b32 r) f(.reg .b32 a) { mov.b32 r, a; ret; }",
            "passes parameters of 'f' in registers, which is not supported",
        ),
        (
            "call f, (c);",
            ".func free(.param .b64 p) { ret; }\n.func f(.param .b64 p) { .param .b64 q; call free, (q); ret; }",
            "calls 'free', which CUDA's runtime provides and the module defines",
        ),
        (
            "call (a), malloc;",
            ".extern .func (.param .b64 r) malloc(.param .b64 n);",
            "the prototype of (b64) malloc (b64)",
        ),
    ],
)
def test_calls_that_are_refused(body: str, functions: str, message: str) -> None:
    with pytest.raises(UnsupportedFeature) as error:
        join(f"{body} ret;", functions)
    assert message in error.value.message
    assert error.value.where is not None
