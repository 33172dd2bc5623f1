from __future__ import annotations

import pytest

from triptych.execution.demangle import demangle, readable, split_function
from triptych.languages.cuda.signatures import parameters_of, read_signatures
from triptych.languages.parameters import parse_type


def texts(source: str) -> dict[str, list[str | None] | None]:
    return {
        name: None if parameters is None else [parameter.text for parameter in parameters]
        for name, parameters in read_signatures(source).items()
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__global__ void k(float *a, int n) {}", {"k": ["float* a", "int n"]}),
        ('extern "C" __global__ void k(const float* __restrict__ a) {}', {"k": ["const float* a"]}),
        ("__global__ void __launch_bounds__(128, 2) k(float const * a) {}", {"k": ["const float* a"]}),
        ("static __launch_bounds__(N) __global__ void k(unsigned long long n);", {"k": ["unsigned long long n"]}),
        ("__global__ __cluster_dims__(2, 1, 1) void k(void) {}", {"k": []}),
        ("__global__ void k() {}", {"k": []}),
        ("template <typename T, int N = 4> __global__ void k(T* a, S<T, 3> s) {}", {"k": ["T* a", "S<T,3> s"]}),
        ("__global__ void k(float a[], int b[4][4], float c = f(1, 2), int) {}",
         {"k": ["float* a", "int* b", "float c", "int"]}),
        ("__global__ void k(float**p, const float* const* q) {}", {"k": ["float** p", "float* const* q"]}),
        ("__global__ void k(void (*f)(int), int n) {}", {"k": [None, "int n"]}),
        ("// __global__ void a(int x);\n/* __global__ void b(int x); */ __global__ void k(int x) {}", {"k": ["int x"]}),
        ('const char* s = "__global__ void a(int x) {}"; __global__ void k(int /* n */ x) {}', {"k": ["int x"]}),
        ("#define KERNEL(name) __global__ void name(int x)\\\n  {}\n__global__ void k(int x) {}", {"k": ["int x"]}),
        ("__global__ void k(int x);\n__global__ void k(int x) {}", {"k": ["int x"]}),
        ("__global__ void k(int x) {}\n__global__ void k(float x) {}", {"k": None}),
        ("namespace a { __global__ void k(int x) {} } namespace b { __global__ void j(char c) {} }",
         {"k": ["int x"], "j": ["char c"]}),
        ("__global__ void k(const __grid_constant__ Params p, std::size_t n) {}", {"k": ["Params p", "size_t n"]}),
        ("__global__", {}),
        ("__global__ void k(", {}),
        ("__global__ int x;", {}),
    ],
)  # fmt: skip
def test_declarations(source: str, expected: dict[str, list[str | None] | None]) -> None:
    assert texts(source) == expected


def test_mangled_names_give_types_and_the_source_gives_names() -> None:
    signatures = read_signatures("namespace ns { template <class T> __global__ void scale(int n, T a, const T* x) {} }")
    known = parameters_of("_ZN2ns5scaleIfEEviT_PKS1_", 3, signatures)
    assert [parameter.text for parameter in known] == ["int n", "float a", "const float* x"]
    assert [parameter.text for parameter in parameters_of("_ZN2ns5scaleIfEEviT_PKS1_", 3, {})] == [
        "int", "float", "const float*"
    ]  # fmt: skip


def test_doubt_says_nothing() -> None:
    signatures = read_signatures(
        "__global__ void k(int a, int b) {} __global__ void j(int x) {} __global__ void j(char x) {}"
    )
    assert parameters_of("k", 3, signatures) == ()
    assert parameters_of("j", 1, signatures) == ()
    assert parameters_of("other", 1, signatures) == ()
    assert [parameter.text for parameter in parameters_of("k", 2, signatures)] == ["int a", "int b"]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("vec_add", "vec_add"),
        ("_Z4axpyPfS_f", "axpy"),
        ("_Z1kIfEvPT_", "k<float>"),
        ("_ZN2ns1jEPf6float2x", "ns::j"),
        ("_ZN12_GLOBAL__N_11kIfEEvPT_", "(anonymous namespace)::k<float>"),
        ("_Z1kILi4ELb1EEvv", "k<4, true>"),
        ("_Zbroken", "_Zbroken"),
    ],
)
def test_readable_names(symbol: str, name: str) -> None:
    assert readable(symbol) == name


def test_parts_of_a_demangled_function() -> None:
    text = demangle("_Z1kI1SIfiEEvT_PFviE")
    assert text is not None
    assert split_function(text) == ("k<S<float, int> >", ("S<float, int>", "void (*)(int)"))


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        ("int", "s32"), ("long long int", "s64"), ("unsigned", "u32"), ("long unsigned int", "u64"), ("bool", "b1"),
        ("const float", "f32"), ("__half", "f16"), ("size_t", "u64"), ("float4", None), ("Particle", None),
    ],
)  # fmt: skip
def test_types_by_value(spelling: str, dtype: str | None) -> None:
    ctype = parse_type(spelling)
    assert not ctype.pointer
    assert (ctype.scalar.name if ctype.scalar else None) == dtype
