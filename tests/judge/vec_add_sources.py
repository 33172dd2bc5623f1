"""Sources of candidates for `vec_add`."""

from __future__ import annotations

HEAD = '''import triptych as tt

KERNEL = tt.cuda.compile(r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
""")["add"]
'''
SOLUTION = """
def solution(a, b):
    c = tt.empty(a.shape, a.dtype)
    KERNEL[(a.size + 255) // 256, 256](a, b, c, a.size)
    return c
"""
_BODIES = {
    "right": "if (i < n) c[i] = a[i] + b[i];",
    "wrong": "if (i < n) c[i] = a[i] - b[i];",
    "out_of_bounds": "c[i + 4096] = a[i] + b[i];",
    "hangs": "while (a[0] == a[0] || n) if (i < 0) c[i] = 0;",
}
SOURCES = {name: HEAD % body + SOLUTION for name, body in _BODIES.items()} | {
    "exits": "import os\nos._exit(0)\n",
    "raises": "def solution(a, b):\n    raise ValueError('no')\n",
    "touches": "def solution(a, b):\n    return a if a[0] > 0 else b\n",
    "no_function": "answer = 42\n",
    "no_python": "solution =\n",
}
