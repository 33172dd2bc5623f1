#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Each block's sum, by a tree in shared memory; the grid strides over the input.
template <typename T, int THREADS> __global__ void by_tree(const T *input, T *sums, int count) {
    __shared__ T partial[THREADS];
    T own = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) own += input[i];
    partial[threadIdx.x] = own;
    __syncthreads();
    for (int width = THREADS / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

// The maximum of each block of any size: the last warp may be partial, and its mask says so.
template <typename T> __global__ void by_shuffle(const T *input, T *maxima, int count) {
    __shared__ T of_warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int left = blockDim.x - warp * 32, lanes = left < 32 ? left : 32;
    unsigned mask = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    T own = i < count ? input[i] : input[0];
    for (int step = 16; step > 0; step /= 2) {
        T other = __shfl_xor_sync(mask, own, step);
        if ((lane ^ step) < lanes && other > own) own = other;
    }
    if (lane == 0) of_warps[warp] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < (blockDim.x + 31) / 32; ++w) own = of_warps[w] > own ? of_warps[w] : own;
        maxima[blockIdx.x] = own;
    }
}

// A sum for each tile of WIDTH threads.
template <typename T, int WIDTH> __global__ void by_tiles(const T *input, T *sums) {
    auto tile = cg::tiled_partition<WIDTH>(cg::this_thread_block());
    unsigned rank = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = cg::reduce(tile, input[rank], cg::plus<T>());
    if (tile.thread_rank() == 0) sums[rank / WIDTH] = sum;
}

// The threads of a branch form a group of their own.
__global__ void by_coalesced_groups(const int *input, int *sums) {
    int value = input[threadIdx.x];
    if (value % 3 == 0) {
        auto group = cg::coalesced_threads();
        int sum = cg::reduce(group, value, cg::plus<int>());
        if (group.thread_rank() == 0) atomicAdd(&sums[0], sum);
    } else {
        auto group = cg::coalesced_threads();
        int largest = cg::reduce(group, value, cg::greater<int>());
        if (group.thread_rank() == group.size() - 1) atomicMax(&sums[1], largest);
    }
}

// Tiles of several warps: they meet in shared memory.
template <int WIDTH> __global__ void by_wide_tiles(const int *input, int *sums) {
    __shared__ cg::block_tile_memory<256> scratch;
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<WIDTH>(block);
    int sum = cg::reduce(tile, input[threadIdx.x], cg::plus<int>());
    sums[threadIdx.x] = sum + tile.meta_group_rank() * 1000000;
}

__device__ unsigned tickets = 0;

// The block that comes last adds what all blocks left behind; the ticket wraps to 0 for the next launch.
__global__ void in_two_stages(const double *input, volatile double *partial, double *total, int count) {
    __shared__ double shared[128];
    __shared__ bool last;
    double own = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) own += input[i];
    for (int stage = 0; stage < 2; ++stage) {
        shared[threadIdx.x] = own;
        __syncthreads();
        for (int width = 64; width > 0; width /= 2) {
            if (threadIdx.x < width) shared[threadIdx.x] += shared[threadIdx.x + width];
            __syncthreads();
        }
        if (stage == 1) break;
        if (threadIdx.x == 0) {
            partial[blockIdx.x] = shared[0];
            __threadfence();
            last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (!last) return;
        own = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += 128) own += partial[i];
    }
    if (threadIdx.x == 0) *total = shared[0];
}

// All blocks of a grid at once, halving the number of partial sums between grid-wide barriers.
__global__ void across_the_grid(const float *input, double *partial, int count) {
    cg::grid_group grid = cg::this_grid();
    int rank = grid.thread_rank();
    double own = 0;
    for (int i = rank; i < count; i += grid.size()) own += input[i];
    partial[rank] = own;
    grid.sync();
    for (int left = grid.size(); left > 1; left = (left + 1) / 2) {
        int half = (left + 1) / 2;
        if (rank < left / 2) partial[rank] += partial[rank + half];
        grid.sync();
    }
}
