// y = SiLU(gate) · up, of n elements, where SiLU(v) = v / (1 + exp(-v)).
#include "packs.cuh"

// Tiling: a thread takes WIDTH neighbours, a block 256 times as many; the last thread takes what is left one by one.
// Memory: 16 bytes an access where the arrays lie so. SiLU(gate) stays in a register: fusing spares its way out and
// back, half of the traffic of two kernels.
// Mapping: neighbouring threads take neighbouring packs: a warp's request is 512 bytes without a gap.
// Overlap: both loads are under way before the first exponential; other warps hide the rest of their time.
__device__ float swiglu_of(float gate, float up) { return gate / (1 + __expf(-gate)) * up; }

template <typename T, int WIDTH> __global__ void swiglu(const T *gate, const T *up, T *y, int n) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    if (first + WIDTH <= n) {
        const auto gates = load<WIDTH>(gate + first), ups = load<WIDTH>(up + first);
        Pack<T, WIDTH> made;
        for (int i = 0; i < WIDTH; ++i) made.elements[i] = T(swiglu_of(gates.elements[i], ups.elements[i]));
        store(y + first, made);
    } else {
        for (int i = first; i < n; ++i) y[i] = T(swiglu_of(gate[i], up[i]));
    }
}
