#include <cassert>

// Says where it is; a grid of two axes, blocks of three.
extern "C" __global__ void places(const float *values) {
    int block = blockIdx.x + gridDim.x * blockIdx.y;
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (thread % 5 == 0) printf("[%d %d] %02d: %s %.3f %c\n", blockIdx.x, blockIdx.y, thread, thread ? "later" : "first", values[block], 'a' + thread);
}

// Fails in the threads whose value is too large.
extern "C" __global__ void bounded(const int *values, int *done, int bound) {
    int i = blockIdx.x * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x;
    assert(values[i] < bound);
    done[i] = 1;
}
