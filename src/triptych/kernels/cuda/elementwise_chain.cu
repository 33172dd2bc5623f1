// y = σ(a · b + c) · a - c, of n elements, where σ(v) = 1 / (1 + exp(-v)): a chain of five operations in one kernel.
#include "packs.cuh"

// Tiling: a thread takes WIDTH neighbours, a block 256 times as many; the last thread takes what is left one by one.
// Memory: 16 bytes an access where the arrays lie so. What is between the operations stays in registers: an operation a
// kernel would move 12 arrays, this moves 4.
// Mapping: neighbouring threads take neighbouring packs: a warp's request is 512 bytes without a gap.
// Overlap: all three loads are under way before the first product; other warps hide the rest of their time.
__device__ float chain_of(float a, float b, float c) { return a / (1 + __expf(-(a * b + c))) - c; }

template <typename T, int WIDTH>
__global__ void elementwise_chain(const T *a, const T *b, const T *c, T *y, int n) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    if (first + WIDTH <= n) {
        const auto as = load<WIDTH>(a + first), bs = load<WIDTH>(b + first), cs = load<WIDTH>(c + first);
        Pack<T, WIDTH> made;
        for (int i = 0; i < WIDTH; ++i) made.elements[i] = T(chain_of(as.elements[i], bs.elements[i], cs.elements[i]));
        store(y + first, made);
    } else {
        for (int i = first; i < n; ++i) y[i] = T(chain_of(a[i], b[i], c[i]));
    }
}
