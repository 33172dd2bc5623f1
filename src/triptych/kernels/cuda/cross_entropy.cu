// loss[row] = log Σ exp(logits[row, j]) - logits[row, target]; 0 where a row's target is IGNORED.
#include "reductions.cuh"

constexpr long long IGNORED = -100;

// Tiling: a block takes a row, each of its threads every blockDim.x-th column.
// Memory: logits are read once: the largest one and the sum of exponentials below it are found together, and no
// probability is stored. The target's comes from L1 or L2 by one thread.
// Mapping: neighbouring threads take neighbouring columns; threads meet by shuffles and, once a row, in shared memory.
// Overlap: none within a row but of a thread's loads; the multiprocessor's other blocks have other rows.
template <typename T>
__global__ void cross_entropy(const T *logits, const long long *targets, float *loss, int columns) {
    const long long target = targets[blockIdx.x];
    if (target == IGNORED) {  // for all threads alike
        if (threadIdx.x == 0) loss[blockIdx.x] = 0;
        return;
    }
    logits += size_t(blockIdx.x) * columns;
    float largest = LOWEST, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float value = logits[i], higher = fmaxf(largest, value);
        sum = sum * __expf(largest - higher) + __expf(value - higher);
        largest = higher;
    }
    const float maximum = over_block<Maximum>(largest);
    sum = over_block<Sum>(sum * __expf(largest - maximum));
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + (maximum - float(logits[target]));
}
