// y = (x - mean of the row) / √(variance of the row + epsilon) · weight + bias; x and y have rows × columns.
#include "reductions.cuh"

// Count, mean and sum of squared distances from the mean: Welford's way of one pass, which no large mean harms.
struct Moments {
    float count = 0, mean = 0, squares = 0;

    __device__ void take(float value) {
        const float distance = value - mean;
        mean += distance / ++count;
        squares += distance * (value - mean);
    }
};

// Tiling: a block takes a row, each of its threads every blockDim.x-th column.
// Memory: x is read twice, the second time from L1 or L2; weight and bias from L1 for all blocks but the first.
// Mapping: neighbouring threads take neighbouring columns. A thread's moments meet the others' as sums of three: those
// of its elements, and of their squared distances from the mean of all.
// Overlap: none within a row but of a thread's loads; the multiprocessor's other blocks have other rows.
template <typename T>
__global__ void layer_norm(const T *x, const T *weight, const T *bias, T *y, int columns, float epsilon) {
    x += size_t(blockIdx.x) * columns, y += size_t(blockIdx.x) * columns;
    Moments own;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) own.take(x[i]);
    const float mean = over_block<Sum>(own.mean * own.count) / columns, away = own.mean - mean;
    const float squares = over_block<Sum>(own.squares + away * away * own.count);
    const float factor = rsqrtf(squares / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = T((float(x[i]) - mean) * factor * float(weight[i]) + float(bias[i]));
}
