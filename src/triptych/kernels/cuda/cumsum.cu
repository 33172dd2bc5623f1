// y[i] = x[0] + … + x[i] of each row of x, rows × columns.
#include "reductions.cuh"

// The sum of a warp's values up to each lane's own.
__device__ float scan(float value) {
    for (int distance = 1; distance < 32; distance *= 2) {
        const float before = __shfl_up_sync(ALL_LANES, value, distance);
        value += threadIdx.x % 32 >= distance ? before : 0;
    }
    return value;
}

// Tiling: a block takes a row, blockDim.x elements at a time; what all before them come to is carried along.
// Memory: each element is read and written once; between, it stays in a register.
// Mapping: neighbouring threads take neighbouring elements: a scan within each warp, and one of the warps' sums.
// Overlap: the next elements are loaded before the barriers of these; the multiprocessor's other blocks hide the rest.
template <typename T> __global__ void cumsum(const T *x, T *y, int columns) {
    __shared__ float sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x += size_t(blockIdx.x) * columns, y += size_t(blockIdx.x) * columns;
    float carry = 0, next = threadIdx.x < columns ? float(x[threadIdx.x]) : 0;
    for (int start = 0; start < columns; start += blockDim.x) {
        const int i = start + threadIdx.x;
        float value = scan(next);
        next = i + blockDim.x < columns ? float(x[i + blockDim.x]) : 0;
        if (lane == 31) sums[warp] = value;
        __syncthreads();
        const float upto = scan(lane < warps ? sums[lane] : 0);  // each warp for itself: no second trip to memory
        value += carry + (warp ? __shfl_sync(ALL_LANES, upto, warp - 1) : 0);
        carry += __shfl_sync(ALL_LANES, upto, warps - 1);
        if (i < columns) y[i] = T(value);
        __syncthreads();  // all have read the sums
    }
}
