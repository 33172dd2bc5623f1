from __future__ import annotations

import json
import math
import random
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from triptych.core.decode import PlanDecoder
from triptych.core.dtypes import DTYPES
from triptych.core.encode import PlanEncoder
from triptych.core.errors import PlanError
from triptych.core.handles import AddressSpace, Handle, Storage, contiguous_strides
from triptych.core.plan import (
    CONSTANT_LIMIT,
    NODES,
    Allocate,
    Argument,
    Choose,
    Constant,
    Copy,
    Fill,
    Launch,
    Node,
    Plan,
    Program,
    Scalar,
    SetVariable,
    Struct,
    fields_of,
)
from triptych.core.serialise import Serialised, deserialise, digest, pack, serialise, unpack

F32 = DTYPES["f32"]
PROGRAM = Program("gpu", ".version 9.0 // é\n", "ptx", "sm_80")


def handle(storage: Storage, *shape: int, dtype: str = "f32", offset: int = 0) -> Handle:
    return Handle(storage, DTYPES[dtype], shape, contiguous_strides(shape, DTYPES[dtype]), offset)


def random_plan(seed: int) -> Plan:
    """A plan with every kind of node and argument, of random sizes and values."""
    values = random.Random(seed)
    space = AddressSpace()
    storages = [space.place(f"s{number}", values.randrange(64, 4096) * 4) for number in range(5)]
    arguments: tuple[Argument, ...] = (
        handle(storages[0], 8, 2, offset=4 * values.randrange(8)),
        Scalar(DTYPES["s64"], values.randrange(-(2**63), 2**63)),
        Scalar(DTYPES["f64"], struct.unpack("<d", values.randbytes(8))[0]),
        Scalar(F32, values.choice([math.inf, -math.inf, -0.0, 1e-45])),
        Struct(values.randbytes(values.randrange(40))),
    )
    launch = Launch("p", "kernel", (values.randrange(1, 99), 1, 2), (32, 1, 1), arguments, 64, (1, 1, 2), True)
    host = values.randbytes(values.randrange(1, 300))
    nodes: list[Node] = [
        Allocate(storages[1]),
        Constant(space.place("host", len(host)), host),
        Fill(handle(storages[1], 16), values.uniform(-9, 9)),
        Fill(handle(storages[1], 16, dtype="s32"), values.randrange(-9, 9)),
        Copy(handle(storages[2], 4, 4), handle(storages[1], 4, 4)),
        SetVariable("p", "v", 4, (Struct(b"abc"), handle(storages[3], 2), Scalar(F32, values.uniform(-9, 9)))),
        launch,
        Choose(("a", "b"), (Plan((launch,)), Plan((launch, launch), {"q": PROGRAM}))),
    ]
    values.shuffle(nodes)
    return Plan(tuple(nodes), {"p": PROGRAM}, (handle(storages[0], 3),), (handle(storages[2], 4),))


@pytest.mark.parametrize("seed", range(20))
def test_round_trip(seed: int) -> None:
    plan = random_plan(seed)
    again = deserialise(serialise(plan))
    # A NaN equals nothing, so plans that hold one are compared by what they are written as.
    assert serialise(again) == serialise(plan)
    assert unpack(pack(plan)) == again or "nan" in repr(plan)
    assert digest(unpack(pack(plan))) == digest(plan)


def test_nan_keeps_its_bits() -> None:
    value = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_1234))[0]
    plan = Plan((Launch("p", "k", (1, 1, 1), (1, 1, 1), (Scalar(DTYPES["f64"], value),)),), {"p": PROGRAM})
    node = unpack(pack(plan)).nodes[0]
    assert isinstance(node, Launch)
    argument = node.arguments[0]
    assert isinstance(argument, Scalar)
    assert struct.pack("<d", argument.value) == struct.pack("<d", value)


def test_integers_and_floats_stay_apart() -> None:
    storage = AddressSpace().place("a", 64)
    one, also_one = (Plan((Fill(handle(storage, 4), value),)) for value in (1, 1.0))
    assert digest(one) != digest(also_one)
    node = unpack(pack(one)).nodes[0]
    assert isinstance(node, Fill)
    assert isinstance(node.value, int)


def test_digest_tells_plans_apart() -> None:
    digests = {digest(random_plan(seed)) for seed in range(10)}
    assert len(digests) == 10
    plan = random_plan(0)
    assert digest(replace(plan, programs={"p": replace(PROGRAM, text="// other")})) != digest(plan)


def test_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    plan = random_plan(3)
    file = tmp_path / "plan"
    file.write_bytes(pack(plan))
    code = (
        "import sys; from pathlib import Path; from triptych.core.serialise import digest, unpack;"
        "print(digest(unpack(Path(sys.argv[1]).read_bytes())))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(plan)


def test_the_form_is_pinned() -> None:
    """A plan that was named by an earlier version keeps its name."""
    space = AddressSpace()
    a, b, host = space.place("a", 256), space.place("b", 256), space.place("host", 3)
    arguments = (handle(a, 8, 2, offset=4), Scalar(DTYPES["s64"], -5), Scalar(F32, -0.0), Struct(b"\1\2"))
    launch = Launch("p", "k", (3, 1, 2), (32, 1, 1), arguments, 64, (1, 1, 2), True)
    nodes: tuple[Node, ...] = (
        Allocate(b),
        Constant(host, b"abc"),
        Fill(handle(b, 16), 1.5),
        Fill(handle(b, 16, dtype="s32"), -9),
        Copy(handle(b, 4, 4), handle(a, 4, 4)),
        launch,
        Choose(("x", "y"), (Plan((launch,)), Plan((launch, launch), {"q": PROGRAM}))),
    )
    later = SetVariable("p", "v", 8, (Struct(b"ab"), handle(a, 2, offset=4), Scalar(F32, 1.5)))
    assert {type(node) for node in (*nodes, later)} == set(NODES.values())
    plan = Plan(nodes, {"p": PROGRAM}, (handle(a, 3),), (handle(b, 4),))
    assert digest(plan) == "0f9335de847d13915aa9df14a3ac9bb12487d968362f93c0c848ddba3b72d959"
    assert unpack(pack(plan)) == plan
    assert plan.made == {b, host}
    assert (
        digest(replace(plan, nodes=(later, *nodes)))
        == "16206d257e5c9a1400f8bf3c07323eb0ad26801e9362e4fba62ff7b8f4c2c0d9"
    )


@pytest.mark.parametrize("kind", NODES.values(), ids=lambda kind: kind.__name__)
def test_every_field_of_a_node_is_of_a_type_that_is_written_and_read(kind: type[Node]) -> None:
    written, read = PlanEncoder().types, PlanDecoder({}).types
    assert set(fields_of(kind).values()) <= written
    assert written == read


@pytest.mark.parametrize("seed", range(5))
def test_any_damage_is_a_plan_error(seed: int) -> None:
    values = random.Random(seed)
    data = pack(random_plan(seed))
    for _ in range(60):
        damaged = bytearray(data)
        damaged[values.randrange(len(damaged))] ^= 1 << values.randrange(8)
        with pytest.raises(PlanError):
            unpack(bytes(damaged))
    for length in (0, 5, 16, 30, len(data) - 1):
        with pytest.raises(PlanError):
            unpack(data[:length])


@pytest.mark.parametrize("seed", range(5))
def test_damaged_json_is_a_plan_error_or_another_plan(seed: int) -> None:
    values = random.Random(seed)
    serialised = serialise(random_plan(seed))
    for _ in range(100):
        damaged = bytearray(serialised.text.encode())
        damaged[values.randrange(len(damaged))] ^= 1 << values.randrange(7)
        text = damaged.decode(errors="replace")
        try:
            plan = deserialise(Serialised(text, serialised.blobs))
        except PlanError:
            continue
        assert serialise(plan).text == text != serialised.text


def test_blob_of_another_content_is_refused() -> None:
    serialised = serialise(random_plan(1))
    name = next(iter(serialised.blobs))
    with pytest.raises(PlanError, match="damaged"):
        deserialise(Serialised(serialised.text, {**serialised.blobs, name: b"other"}))
    with pytest.raises(PlanError, match="missing"):
        deserialise(Serialised(serialised.text, {}))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), "triptych.plan/2", "expected schema triptych.plan/1"),
        (("storages", 0, "address"), True, r"storages\[0\].address: expected int"),
        (("storages", 0, "size"), -4, "does not lie where arrays may lie"),
        (("plan", "inputs", 0, "storage"), 99, "99, but the plan has"),
        (("plan", "inputs", 0, "dtype"), "f33", "unknown dtype 'f33'"),
        (("plan", "inputs", 0, "shape"), [1 << 40], "do not lie in storage"),
        (("plan", "nodes"), 3, "plan.nodes: expected a list"),
        (("plan", "nodes", 0, "node"), "jump", "unknown node 'jump'"),
    ],
)
def test_document_that_does_not_fit_names_the_place(path: tuple[str | int, ...], value: object, message: str) -> None:
    serialised = serialise(random_plan(2))
    document = json.loads(serialised.text)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(PlanError, match=message):
        deserialise(Serialised(json.dumps(document), serialised.blobs))


def check(message: str, *nodes: Node, **fields: object) -> None:
    plan = replace(Plan(nodes, {"p": PROGRAM}), **fields)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=message):
        serialise(plan)


def test_inconsistent_plans_are_refused() -> None:
    space = AddressSpace()
    storage, other = space.place("a", 64), space.place("b", 64)
    launch = Launch("p", "k", (1, 1, 1), (1, 1, 1), ())
    check("bytes 0 to 68 do not lie in storage 'a', which has 64", Fill(handle(storage, 17), 0))
    check("bytes -4 to 0", Fill(handle(storage, 1, offset=-4), 0))
    check(
        "program 'p': .* does not run on a machine 'abacus'", launch, programs={"p": replace(PROGRAM, machine="abacus")}
    )
    check("program 'p': unknown language 'logo'", launch, programs={"p": replace(PROGRAM, language="logo")})
    check("no program 'q'; the plan has: p", replace(launch, program="q"))
    check(r"grid \(0, 1, 1\)", replace(launch, grid=(0, 1, 1)))
    check("expected the same dtype and shape", Copy(handle(storage, 4), handle(other, 5)))
    check("'a' is read-only", Fill(handle(replace(storage, writable=False), 4), 0))
    check("3 bytes for a storage of 64", Constant(storage, b"abc"))
    check("overlaps 'a'", Allocate(storage), Allocate(Storage("c", storage.address + 32, 64)))
    check("two storages are called 'a'", Allocate(storage), Allocate(replace(other, name="a")))
    check("1 labels for 0 alternatives", Choose(("x",), ()))
    check("2 alternatives are called 'x'", Choose(("x", "y", "x"), (Plan(()),) * 3))
    check(r"node 0\.1\.0 \(fill\)", Choose(("x", "y"), (Plan(()), Plan((Fill(handle(storage, 99), 0),)))))
    check("no program 'q'; the plan has: p", SetVariable("q", "v", 0, ()))
    check("variable 'v': offset -1", SetVariable("p", "v", -1, ()))
    check("variable 'v': 300 is no u8", SetVariable("p", "v", 0, (Scalar(DTYPES["u8"], 300),)))
    check("bytes 60 to 68", SetVariable("p", "v", 0, (handle(storage, 2, offset=60),)))
    check("at most 1048576 may come from the host", SetVariable("p", "v", 0, (Struct(bytes(CONSTANT_LIMIT + 1)),)))
    big = space.place("big", CONSTANT_LIMIT + 1)
    check("at most 1048576 may come from the host", Constant(big, bytes(big.size)))


def test_negative_strides_stay_inside() -> None:
    storage = AddressSpace().place("a", 64)
    reverse = Handle(storage, F32, (16,), (-4,), 60)
    assert unpack(pack(Plan((Fill(reverse, 1.0),)))).nodes == (Fill(reverse, 1.0),)
    check("do not lie in", Fill(replace(reverse, offset=56), 1.0))


@pytest.mark.parametrize("value", [3, None, "plan"])
def test_what_is_no_plan(value: object) -> None:
    for function in (pack, digest, serialise):
        with pytest.raises(PlanError, match=f"expected a plan, got {type(value).__name__}"):
            function(value)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="expected the bytes of a packed plan, got"):
        unpack(value)  # type: ignore[arg-type]


def test_deep_nesting_is_refused() -> None:
    plan = Plan(())
    for _ in range(20):
        plan = Plan((Choose(("a",), (plan,)),))
    with pytest.raises(PlanError, match="nested more than 8 deep"):
        serialise(plan)


@pytest.mark.parametrize(
    ("address", "size"),
    [
        *((address, 400) for address in (0, 0x8_0000_0000, 0x7D00_0000_0000, 0x7F00_0000_0000, 2**63 - 400, 2**64)),
        (AddressSpace.FIRST_ADDRESS - 1, 1),
        (AddressSpace.END_ADDRESS - 1, 2),
        (AddressSpace.FIRST_ADDRESS, 2**50),
    ],
)
def test_a_storage_where_no_array_may_lie(address: int, size: int) -> None:
    check(
        "does not lie where arrays may lie, from 0x1000000000 to 0x7affffffffff", Allocate(Storage("a", address, size))
    )


def test_storages_at_both_ends_of_where_arrays_may_lie() -> None:
    ends = Storage("a", AddressSpace.FIRST_ADDRESS, 1), Storage("b", AddressSpace.END_ADDRESS - 1, 1)
    plan = Plan(tuple(Allocate(storage) for storage in ends))
    assert unpack(pack(plan)) == plan


def test_handles_that_no_array_could_be() -> None:
    storage = AddressSpace().place("a", 400)
    for shape, strides, message in (
        ((1,) * 65, (4,) * 65, "65 axes; at most 64"),
        ((1 << 62,), (0,), "reach beyond 9223372036854775807 bytes"),
        ((0, 1 << 62), (0, 0), "reach beyond"),
        ((1,), (-(1 << 63),), "reach beyond"),
    ):
        check(message, outputs=(Handle(storage, F32, shape, strides),))
    check("has 404 bytes of elements, its storage 'a' has fewer", Fill(Handle(storage, F32, (101,), (0,)), 1.0))
    wide = Handle(storage, F32, (1 << 40,), (0,))
    check("bytes of elements", Copy(wide, wide))
    repeated = Handle(storage, F32, (1 << 60,), (0,))
    assert unpack(pack(Plan((), outputs=(repeated,)))).outputs == (repeated,)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *(("u64", value) for value in (1 << 64, -1, 0.5, math.nan, math.inf)),
        *(("f32", value) for value in (1e300, -1e300, 10**400)),
        *(("b1", 2), ("s8", 128), ("f16", 65520.0), ("f8e4m3fn", 1000.0), ("f8e4m3fn", math.inf)),
    ],
)
def test_values_that_a_dtype_has_not(dtype: str, value: float) -> None:
    storage = AddressSpace().place("a", 8)
    launch = Launch("p", "k", (1, 1, 1), (1, 1, 1), (Scalar(DTYPES[dtype], value),))
    check(rf"argument 0: .* is no {dtype}$", launch)
    check(rf"fill of 'a': .* is no {dtype}$", Fill(handle(storage, 1, dtype=dtype), value))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *(("u64", (1 << 64) - 1), ("s64", -(1 << 63)), ("s32", 3.0), ("b1", 1), ("f16", 65519.0)),
        *((dtype, value) for dtype in ("f32", "f64", "bf16", "f8e5m2") for value in (math.inf, 1e-300, 3)),
    ],
)
def test_values_that_a_dtype_has(dtype: str, value: float) -> None:
    plan = Plan((Launch("p", "k", (1, 1, 1), (1, 1, 1), (Scalar(DTYPES[dtype], value),)),), {"p": PROGRAM})
    assert unpack(pack(plan)) == plan


def test_what_numbers_round_to() -> None:
    assert DTYPES["f32"].nearest(0.1) == 0.10000000149011612
    assert DTYPES["f32"].nearest(1e300) == math.inf
    assert DTYPES["bf16"].nearest(-1e300) == -math.inf
    assert math.isnan(DTYPES["f8e4m3fn"].nearest(1000.0))


def test_views_of_bytes_are_unpacked() -> None:
    plan = random_plan(4)
    assert digest(unpack(memoryview(pack(plan)))) == digest(unpack(bytearray(pack(plan)))) == digest(plan)
