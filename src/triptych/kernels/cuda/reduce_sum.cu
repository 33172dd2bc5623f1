// y[row, part] = the sum of a part of a row of x: of `length` columns, or what is left. One part, or two launches: the
// second one sums up the first one's parts, so that sums of one long row have many blocks, and no order but one.
#include "reductions.cuh"

// Tiling: a block takes a part of a row, each of its threads every blockDim.x-th element.
// Memory: each element is read once, into a sum in a register.
// Mapping: neighbouring threads take neighbouring columns; threads meet by shuffles and, once, in shared memory.
// Overlap: a thread has four loads under way at a time; the multiprocessor's other blocks have others.
template <typename T, typename Y> __global__ void reduce_sum(const T *x, Y *y, int columns, int length) {
    x += size_t(blockIdx.y) * columns;
    const int end = min(columns, (blockIdx.x + 1) * length);
    float sum = 0;
#pragma unroll 4
    for (int i = blockIdx.x * length + threadIdx.x; i < end; i += blockDim.x) sum += float(x[i]);
    sum = over_block<Sum>(sum);
    if (threadIdx.x == 0) y[size_t(blockIdx.y) * gridDim.x + blockIdx.x] = Y(sum);
}
