// y = x / √(mean of the row's x² + epsilon) · weight, with x and y of rows × columns, weight of columns.
#include "reductions.cuh"

// Tiling: a block takes a row, each of its threads every blockDim.x-th column.
// Memory: x is read twice, the second time from L1 or L2; weight from L1 for all blocks of a multiprocessor but one.
// Mapping: neighbouring threads take neighbouring columns; threads meet by shuffles and, once a row, in shared memory.
// Overlap: none within a row but of a thread's loads; the multiprocessor's other blocks have other rows.
template <typename T> __global__ void rms_norm(const T *x, const T *weight, T *y, int columns, float epsilon) {
    x += size_t(blockIdx.x) * columns, y += size_t(blockIdx.x) * columns;
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += float(x[i]) * float(x[i]);
    const float factor = rsqrtf(over_block<Sum>(squares) / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = T(float(x[i]) * factor * float(weight[i]));
}
