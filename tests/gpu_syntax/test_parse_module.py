"""What the parser makes of each construct."""

from __future__ import annotations

import pytest

from triptych.gpu.syntax import parse, print_module
from triptych.gpu.syntax.ast import (
    Address,
    AddressList,
    BranchTargets,
    CallPrototype,
    CallTargets,
    FloatBits,
    Function,
    Group,
    Guard,
    Instruction,
    Integer,
    Label,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
DECLARATIONS = """.reg .pred %p<4>; .reg .b32 %r<9>, named; .reg .b64 %rd<4>;
.global .b32 table[4]; .shared .align 16 .b8 tile[64];"""


def parse_body(body: str) -> Function:
    module = parse(f"{HEADER}.global .b32 outside;\n.entry kernel()\n{{\n{DECLARATIONS}\n{body}\n}}\n")
    return module.functions["kernel"]


def instructions(function: Function) -> list[Instruction]:
    return [statement for statement in function.body or () if isinstance(statement, Instruction)]


def parse_operand(text: str) -> Operand:
    (instruction,) = instructions(parse_body(f"op.b32 {text};"))
    (operand,) = instruction.operands
    return operand


def test_header() -> None:
    module = parse(".version 8.10\n.target sm_90a, debug\n.address_size 64")
    assert (module.version, module.target, module.address_size) == ((8, 10), "sm_90a", 64)
    assert parse(".version 8.0 .target sm_80").address_size == 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", Register("%r1")),
        ("named", Register("named")),
        ("%tid.x", Register("%tid.x")),
        ("%laneid", Register("%laneid")),
        ("%envreg31", Register("%envreg31")),
        ("7", Integer(7)),
        ("-7", Integer(-7)),
        ("0x1F", Integer(31)),
        ("0b101U", Integer(5)),
        ("017", Integer(15)),
        ("0", Integer(0)),
        ("7U", Integer(7)),
        ("0xFFFFFFFFFFFFFFFF", Integer(2**64 - 1)),
        ("-9223372036854775808", Integer(-(2**63))),
        ("WARP_SZ", Integer(32)),
        ("(1<<4)|2", Integer(18)),
        ("1 + 2 * 3", Integer(7)),
        ("~0", Integer(-1)),
        ("0f3F800000", FloatBits(0x3F800000, 32)),
        ("0F7f800000", FloatBits(0x7F800000, 32)),
        ("0d3FF0000000000000", FloatBits(0x3FF0000000000000, 64)),
        ("1.5", FloatBits(0x3FF8000000000000, 64)),
        ("-1.5e1", FloatBits(0xC02E000000000000, 64)),
        ("1e3", FloatBits(0x408F400000000000, 64)),
        ("outside", Symbol("outside")),
        ("outside+4", Symbol("outside", 4)),
        ("tile-4", Symbol("tile", -4)),
        ("[%rd1]", Address(Register("%rd1"))),
        ("[ %rd1 + 0 ]", Address(Register("%rd1"))),
        ("[%rd1+16]", Address(Register("%rd1"), 16)),
        ("[%rd1+-8]", Address(Register("%rd1"), -8)),
        ("[%rd1-8+4]", Address(Register("%rd1"), -4)),
        ("[outside+4]", Address(Symbol("outside"), 4)),
        ("[64]", Address(Integer(64))),
        ("!%p1", Not(Register("%p1"))),
        ("_", Sink()),
        ("%r1|%p1", Pair(Register("%r1"), Register("%p1"))),
        ("_|%p1", Pair(Sink(), Register("%p1"))),
        ("{%r1, %r2}", Vector((Register("%r1"), Register("%r2")))),
        ("{%r1, _, 3}", Vector((Register("%r1"), Sink(), Integer(3)))),
        ("[%rd1, {%r1, %r2}]", AddressList((Register("%rd1"), Vector((Register("%r1"), Register("%r2")))))),
        ("[%rd1+8, {%r1}]", AddressList((Address(Register("%rd1"), 8), Vector((Register("%r1"),))))),
        ("[outside, %rd2]", AddressList((Symbol("outside"), Register("%rd2")))),
    ],
)
def test_operands(text: str, expected: Operand) -> None:
    assert parse_operand(text) == expected


def test_instruction_parts() -> None:
    (instruction,) = instructions(parse_body("\n@!named atom.global.gpu.acq_rel.add.u32 %r1, [%rd1],\n 1;"))
    assert instruction.mnemonic == "atom"
    assert instruction.modifiers == ("global", "gpu", "acq_rel", "add", "u32")
    assert instruction.opcode == "atom.global.gpu.acq_rel.add.u32"
    assert instruction.guard == Guard(Register("named"), negated=True)
    assert instruction.operands == (Register("%r1"), Address(Register("%rd1")), Integer(1))
    assert instruction.line == 10


def test_modifiers_keep_their_colons() -> None:
    (instruction,) = instructions(parse_body("ld.global.L1::evict_last.L2::128B.b32 %r1, [%rd1];"))
    assert instruction.modifiers == ("global", "L1::evict_last", "L2::128B", "b32")


def test_statements_end_at_semicolons_not_at_lines() -> None:
    function = parse_body("mov.b32 %r1, 1; mov.b32\n%r2\n,\n2\n;; ret;")
    assert [i.mnemonic for i in instructions(function)] == ["mov", "mov", "ret"]


def test_comments_are_spaces() -> None:
    function = parse_body("mov.b32 /* ; } */ %r1, // ; }\n 1; // end } \n/* many\nlines */ ret;")
    assert [(i.mnemonic, i.line) for i in instructions(function)] == [("mov", 9), ("ret", 12)]


def test_call_groups() -> None:
    body = """.param .b32 result; .param .b64 argument;
    call.uni (result), helper, (argument, %r1); call helper; call (result), %rd1, (), prototype;
    prototype: .callprototype (.param .b32 _) _ (.param .b64 _);"""
    text = f"{HEADER}.extern .func (.param .b32 r) helper(.param .b64 a);\n.entry k() {{ {DECLARATIONS} {body} }}"
    function = parse(text).functions["k"]
    first, second, third = instructions(function)
    assert first.operands == (
        Group((Symbol("result"),)),
        Symbol("helper"),
        Group((Symbol("argument"), Register("%r1"))),
    )
    assert second.operands == (Symbol("helper"),)
    assert third.operands == (Group((Symbol("result"),)), Register("%rd1"), Group(()), Symbol("prototype"))
    (prototype,) = (s for s in function.body or () if isinstance(s, CallPrototype))
    assert prototype.name == "prototype"
    assert [(v.space, v.type) for v in prototype.results] == [("param", "b32")]
    assert [(v.space, v.type) for v in prototype.parameters] == [("param", "b64")]


def test_lists_for_indirect_calls() -> None:
    body = """A: .calltargets f, g; B: .callprototype ()_ (.param .align 8 .b8 _[12]) .noreturn;
    C: .callprototype _; ret;"""
    declared = ".func f(.param .b32 a);\n.func g(.param .b32 a);"
    text = f"{HEADER}{declared}\n.entry k() {{ {DECLARATIONS} {body} }}"
    module = parse(text)
    targets, first, second = (s for s in module.functions["k"].body or () if not isinstance(s, Instruction))
    assert targets == CallTargets("A", ("f", "g"), targets.line)
    assert isinstance(first, CallPrototype)
    assert (first.results, [(v.count, v.align) for v in first.parameters]) == ((), [(12, 8)])
    assert second == CallPrototype("C", (), (), second.line)
    printed = print_module(module)
    assert "A: .calltargets f, g;" in printed
    assert print_module(parse(printed)) == printed


def test_branch_targets() -> None:
    function = parse_body("LIST: .branchtargets A, B; brx.idx %r1, LIST; A: B: ret;")
    body = list(function.body or ())
    assert body[0] == BranchTargets("LIST", ("A", "B"), 9)
    assert body[2:4] == [Label("A", 9), Label("B", 9)]
    assert instructions(function)[0].operands == (Register("%r1"), Symbol("LIST"))


def test_scopes_make_names_unique() -> None:
    part = "{ .reg .pred named; .param .b32 param0; WAIT: @!named bra.uni WAIT; st.param.b32 [param0+0], %r1; }"
    function = parse_body(
        f"{part} {part} @%p1 bra WAIT; WAIT: ret;".replace("@%p1 bra WAIT; WAIT:", "@%p1 bra END; END:")
    )
    labels = [s.name for s in function.body or () if isinstance(s, Label)]
    assert labels == ["WAIT", "WAIT$1", "END"]
    first, first_store, second, second_store, *_ = instructions(function)
    assert first.operands == (Symbol("WAIT"),)
    assert second.operands == (Symbol("WAIT$1"),)
    assert first.guard == Guard(Register("named$1"), negated=True)
    assert second.guard == Guard(Register("named$2"), negated=True)
    assert first_store.operands[0] == Address(Symbol("param0"))
    assert second_store.operands[0] == Address(Symbol("param0$1"))
    assert function.registers["named"] == "b32"
    assert function.registers["named$2"] == "pred"
    assert [v.name for v in function.variables if v.space == "param"] == ["param0", "param0$1"]


def test_a_branch_takes_the_innermost_label_even_forward() -> None:
    function = parse_body("X: { @%p1 bra X; bra.uni Y; X: Y: } bra X;")
    assert [i.operands for i in instructions(function)] == [(Symbol("X$1"),), (Symbol("Y"),), (Symbol("X"),)]


def test_an_outer_name_is_visible_again_behind_a_scope() -> None:
    function = parse_body("{ .reg .b32 outside; mov.b32 outside, %r1; } mov.b32 %r1, outside;")
    inside, behind = instructions(function)
    assert inside.operands[0] == Register("outside$1")
    assert behind.operands[1] == Symbol("outside")


def test_register_ranges() -> None:
    function = parse(f"{HEADER}.entry k() {{ .reg .b32 %r<3>; .reg .f64 a, b<2>; }}").functions["k"]
    assert function.registers == {"%r0": "b32", "%r1": "b32", "%r2": "b32", "a": "f64", "b0": "f64", "b1": "f64"}


def parse_declaration(text: str) -> Module:
    return parse(f"{HEADER}.extern .func called();\n.global .b32 other[4];\n{text}")


def test_entry_parameters() -> None:
    module = parse_declaration(
        """.visible .entry k(.param .u64 .ptr .global .align 16 pointer, .param .u32 n,
        .param .align 64 .b8 map[128], .param .f32 scale) .maxntid 256, 1, 1 .reqntid 128
        .minnctapersm 2 .maxnreg 64 .explicitcluster .reqnctapercluster 2, 1, 1 .pragma "nounroll"; { ret; }"""
    )
    function = module.functions["k"]
    pointer, n, tensor_map, scale = function.parameters
    assert (pointer.type, pointer.align, pointer.is_pointer, pointer.count) == ("u64", 8, True, None)
    assert (n.name, n.type, n.align, n.is_pointer) == ("n", "u32", 4, False)
    assert (tensor_map.type, tensor_map.align, tensor_map.count, tensor_map.space) == ("b8", 64, 128, "param")
    assert scale.type == "f32"
    assert function.is_entry
    assert function.linkage == "visible"
    assert function.directives == {
        "maxntid": (256, 1, 1),
        "reqntid": (128,),
        "minnctapersm": (2,),
        "maxnreg": (64,),
        "explicitcluster": (),
        "reqnctapercluster": (2, 1, 1),
    }


def test_function_with_results_and_its_declaration() -> None:
    header = ".func (.param .align 8 .b8 r[16]) f(.param .b32 a)"
    function = parse_declaration(f"{header};\n.weak {header} {{ ret; }}").functions["f"]
    assert function.body is not None
    assert function.linkage == "weak"
    assert (function.results[0].count, function.results[0].align) == (16, 8)
    assert parse_declaration(".extern .func g() .noreturn;").functions["g"].directives == {"noreturn": ()}


def test_register_parameters_are_registers() -> None:
    function = parse_declaration(".func (.reg .b32 r) f(.reg .b32 a) { mov.b32 r, a; ret; }").functions["f"]
    assert function.registers == {"r": "b32", "a": "b32"}
    assert instructions(function)[0].operands == (Register("r"), Register("a"))


def test_alias_names_the_same_body() -> None:
    module = parse_declaration(".func f() { ret; }\n.func g();\n.alias g, f;")
    assert module.functions["g"].body == module.functions["f"].body
    assert module.functions["g"].name == "g"


@pytest.mark.parametrize(
    ("declaration", "initial"),
    [
        (".global .u32 v = 5;", b"\5\0\0\0"),
        (".global .s16 v[2] = {-1, 2};", b"\xff\xff\2\0"),
        (".global .b8 v[4] = {1, 2};", b"\1\2\0\0"),
        (".global .b8 v[] = {1, 0x10, 3};", b"\1\x10\3"),
        (".const .f32 v[2] = {0f3F800000, 2.0};", b"\0\0\x80\x3f\0\0\0\x40"),
        (".const .f64 v = 1.5;", b"\0\0\0\0\0\0\xf8\x3f"),
        (".const .f64 v[1] = {0d3FF0000000000000};", b"\0\0\0\0\0\0\xf0\x3f"),
        (".global .b8 v[2][2] = {{1}, {3, 4}};", b"\1\0\3\4"),
        (".global .b8 v[2][2] = {1, 2, 3};", b"\1\2\3\0"),
        (".global .v2 .b8 v = {1, 2};", b"\1\2"),
        (".global .b64 v = -1;", b"\xff" * 8),
        (".global .b32 v;", None),
    ],
)
def test_initial_values(declaration: str, initial: bytes | None) -> None:
    assert parse_declaration(declaration).variables["v"].initial == initial


def test_addresses_in_initial_values() -> None:
    variable = parse_declaration(".global .u64 v[4] = {called, generic(other)+8, 7, other};").variables["v"]
    assert variable.references == ((0, Symbol("called")), (8, Symbol("other", 8)), (24, Symbol("other")))
    assert variable.initial == b"\0" * 16 + b"\7" + b"\0" * 15


def test_masked_addresses_are_joined() -> None:
    masks = ", ".join(f"{0xFF << 8 * byte:#x}(generic(other)+4)" for byte in range(8))
    variable = parse_declaration(f".global .b8 v[12] = {{9, 0, 0, 0, {masks}}};").variables["v"]
    assert variable.references == ((4, Symbol("other", 4)),)
    assert variable.initial == b"\t" + b"\0" * 11


@pytest.mark.parametrize(
    ("declaration", "count", "align", "linkage"),
    [
        (".extern .shared .align 16 .b8 v[];", 0, 16, "extern"),
        (".weak .global .align 8 .u32 v[4][3];", 12, 8, "weak"),
        (".common .global .u32 v;", None, 4, "common"),
        (".global .attribute(.managed) .align 4 .u32 v;", None, 4, ""),
        (".visible .const .v4 .f32 v[2];", 8, 16, "visible"),
    ],
)
def test_declarations(declaration: str, count: int | None, align: int, linkage: str) -> None:
    variable = parse_declaration(declaration).variables["v"]
    assert (variable.count, variable.align, variable.linkage) == (count, align, linkage)


def test_an_extern_declaration_gives_way_to_the_definition() -> None:
    module = parse_declaration(".extern .global .u32 v;\n.global .u32 v = 3;\n.extern .global .u32 v;")
    assert module.variables["v"].initial == b"\3\0\0\0"


def test_debug_sections_are_skipped() -> None:
    module = parse_declaration(
        '.section .debug_str\n{\n$L__info_string0:\n.b8 1,2 // }\n.b8 0\n}\n.file 1 "a\\"b.cu", 12, 13\n'
    )
    assert module.files == {1: 'a"b.cu'}


def test_pragmas_are_ignored() -> None:
    function = parse_body('.pragma "nounroll"; ret;')
    assert [i.mnemonic for i in instructions(function)] == ["ret"]
