// c = a + b, of n elements.
#include "packs.cuh"

// Tiling: a thread takes WIDTH neighbours, a block 256 times as many; the last thread takes what is left one by one.
// Memory: 16 bytes an access where the arrays lie so: a quarter of the instructions for the same sectors. Nothing is
// used twice, so that nothing is kept: registers only.
// Mapping: neighbouring threads take neighbouring packs: a warp's request is 512 bytes without a gap.
// Overlap: both loads are under way before the sum; other warps hide the rest of their time.
template <typename T, int WIDTH> __global__ void vec_add(const T *a, const T *b, T *c, int n) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    if (first + WIDTH <= n) {
        const auto left = load<WIDTH>(a + first), right = load<WIDTH>(b + first);
        Pack<T, WIDTH> sum;
        for (int i = 0; i < WIDTH; ++i) sum.elements[i] = T(float(left.elements[i]) + float(right.elements[i]));
        store(c + first, sum);
    } else {
        for (int i = first; i < n; ++i) c[i] = T(float(a[i]) + float(b[i]));
    }
}
