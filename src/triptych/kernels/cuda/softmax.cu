// y = softmax of each row of x, rows × columns.
#include "reductions.cuh"

// Tiling: a block takes a row, each of its threads every blockDim.x-th column.
// Memory: one pass finds the largest element and the sum of exponentials below it together (the sum shrinks whenever
// the maximum grows), a second one writes: x is read twice instead of thrice, the second time from L1 or L2.
// Mapping: neighbouring threads take neighbouring columns; threads meet by shuffles and, once a row, in shared memory.
// Overlap: none within a row but of a thread's loads; the multiprocessor's other blocks have other rows.
template <typename T> __global__ void softmax(const T *x, T *y, int columns) {
    x += size_t(blockIdx.x) * columns, y += size_t(blockIdx.x) * columns;
    float largest = LOWEST, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float value = x[i], higher = fmaxf(largest, value);
        sum = sum * __expf(largest - higher) + __expf(value - higher);
        largest = higher;
    }
    const float maximum = over_block<Maximum>(largest);
    const float factor = 1 / over_block<Sum>(sum * __expf(largest - maximum));
    for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = T(__expf(float(x[i]) - maximum) * factor);
}
