// y = GELU(W x + b), with W of m × k by rows, x of k elements, b and y of m.
#include "reductions.cuh"

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

// Tiling: a warp makes one element of y, from its row of W in steps of 32.
// Memory: W is read once, by whole sectors; x comes from L1 for all warps but a block's first. The product and the sum
// with b never leave the registers: that is what fusing spares.
// Mapping: neighbouring lanes take neighbouring columns; their sums meet by shuffles.
// Overlap: loads do not depend on the sums, so that several steps' are under way; other warps hide the rest.
template <typename T> __global__ void gelu_linear(const T *w, const T *x, const T *b, T *y, int m, int k) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= m) return;
    float sum = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < k; i += 32) sum += float(w[size_t(row) * k + i]) * float(x[i]);
    sum = over_warp<Sum>(sum);
    if (threadIdx.x == 0) y[row] = T(gelu(sum + float(b[row])));
}
