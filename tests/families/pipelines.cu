// Copies that run beside the arithmetic: barriers in shared memory, pipelines, and the hardware that copies in bulk.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
using Word = cuda::std::uint64_t;

// Threads of a block meet at a barrier of shared memory, some of them earlier than they wait; each round a token.
extern "C" __global__ void rounds(const int *input, int *output, int count) {
    __shared__ Barrier barrier;
    __shared__ int tile[256];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    int sum = 0;
    for (int first = 0; first < count; first += blockDim.x) {
        tile[threadIdx.x] = input[first + threadIdx.x];
        auto token = barrier.arrive();
        sum *= 3;
        barrier.wait(cuda::std::move(token));
        sum += tile[blockDim.x - 1 - threadIdx.x];
        barrier.arrive_and_wait();
    }
    output[threadIdx.x] = sum;
}

// Threads leave the barrier one after the other; those that stay go on without them.
extern "C" __global__ void leaving(int *output) {
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (int round = 0; round < blockDim.x; ++round) {
        if (round == threadIdx.x) { barrier.arrive_and_drop(); return; }
        barrier.arrive_and_wait();
        output[threadIdx.x] = round + 1;
    }
}

// A block's barrier of which every thread is told with its own copies: cuda::memcpy_async, whole tiles and their rests.
extern "C" __global__ void tiles_by_barrier(const float *input, float *output, int count) {
    __shared__ alignas(16) float tile[128];
    __shared__ Barrier barrier;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    for (int first = blockIdx.x * 128; first < count; first += gridDim.x * 128) {
        int size = min(128, count - first);
        cuda::memcpy_async(block, tile, input + first, sizeof(float) * size, barrier);
        barrier.arrive_and_wait();
        for (int i = threadIdx.x; i < size; i += blockDim.x) output[first + i] = tile[size - 1 - i];
        block.sync();
    }
}

// The same where size and places are known to be multiples of 16 bytes: one thread has it copied in bulk.
extern "C" __global__ void aligned_tiles_by_barrier(const float *input, float *output, int count) {
    __shared__ alignas(16) float tile[128];
    __shared__ Barrier barrier;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    for (int first = blockIdx.x * 128; first < count; first += gridDim.x * 128) {
        int size = min(128, count - first);
        cuda::memcpy_async(block, tile, input + first, cuda::aligned_size_t<16>(sizeof(float) * size), barrier);
        barrier.arrive_and_wait();
        for (int i = threadIdx.x; i < size; i += blockDim.x) output[first + i] = tile[size - 1 - i];
        block.sync();
    }
}

// The same by cooperative groups alone.
extern "C" __global__ void tiles_by_group(const float *input, float *output, int count) {
    __shared__ alignas(16) float tile[128];
    auto block = cg::this_thread_block();
    for (int first = blockIdx.x * 128; first < count; first += gridDim.x * 128) {
        int size = min(128, count - first);
        cg::memcpy_async(block, tile, 128, input + first, size);
        cg::wait(block);
        for (int i = threadIdx.x; i < size; i += blockDim.x) output[first + i] = tile[size - 1 - i];
        block.sync();
    }
}

// Two stages in flight: a pipeline of the block, in which all threads copy and all add up.
extern "C" __global__ void two_stages(const float *input, float *output, int tiles) {
    constexpr int STAGES = 2, TILE = 64;
    __shared__ float buffer[STAGES][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int compute = 0, fetch = 0; compute < tiles; ++compute) {
        for (; fetch < tiles && fetch < compute + STAGES; ++fetch) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, buffer[fetch % STAGES], input + fetch * TILE, sizeof(float) * TILE, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += buffer[compute % STAGES][threadIdx.x] * (compute + 1);
        pipeline.consumer_release();
    }
    output[threadIdx.x] = sum;
}

// Each thread's own pipeline.
extern "C" __global__ void own_pipeline(const float *input, float *output, int tiles) {
    __shared__ float buffer[2][64];
    auto pipeline = cuda::make_pipeline();
    float sum = 0;
    for (int compute = 0, fetch = 0; compute < tiles; ++compute) {
        for (; fetch < tiles && fetch < compute + 2; ++fetch) {
            pipeline.producer_acquire();
            cuda::memcpy_async(&buffer[fetch % 2][threadIdx.x], input + fetch * 64 + threadIdx.x, 4, pipeline);
            pipeline.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<1>(pipeline);
        if (compute + 1 == tiles) cuda::pipeline_consumer_wait_prior<0>(pipeline);
        sum += buffer[compute % 2][threadIdx.x] * (compute + 1);
        pipeline.consumer_release();
    }
    output[threadIdx.x] = sum;
}

// The first warp copies, the others add up: a pipeline whose threads have roles.
extern "C" __global__ void roles(const float *input, float *output, int tiles) {
    constexpr int STAGES = 3, TILE = 64;
    __shared__ float buffer[STAGES][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    bool produces = threadIdx.x < 32;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipeline = cuda::make_pipeline(block, &state, role);
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        if (produces) {
            pipeline.producer_acquire();
            for (int i = threadIdx.x; i < TILE; i += 32)
                cuda::memcpy_async(&buffer[tile % STAGES][i], input + tile * TILE + i, sizeof(float), pipeline);
            pipeline.producer_commit();
        } else {
            pipeline.consumer_wait();
            sum += buffer[tile % STAGES][threadIdx.x - 32] * (tile + 1);
            pipeline.consumer_release();
        }
    }
    if (!produces) output[threadIdx.x - 32] = sum;
}

// Bulk copies into a ring of buffers by one thread of the first warp; the other warps wait for full ones and hand back
// empty ones, by the parity of their rounds; the sums go back in bulk, too.
template <int STAGES> __global__ void ring(const float *input, float *output, int tiles) {
    constexpr int TILE = 64;
    __shared__ alignas(128) float buffer[STAGES][TILE];
    __shared__ alignas(128) float sums[TILE];
    __shared__ Word full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], TILE);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) for (int tile = 0; tile < tiles; ++tile) {
            int stage = tile % STAGES, round = tile / STAGES;
            while (!ptx::mbarrier_try_wait_parity(&empty[stage], (round & 1) ^ 1)) {}
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage], 4 * TILE);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buffer[stage],
                               input + (blockIdx.x * tiles + tile) * TILE, 4 * TILE, &full[stage]);
        }
    } else {
        float sum = 0;
        for (int tile = 0; tile < tiles; ++tile) {
            int stage = tile % STAGES, round = tile / STAGES;
            while (!ptx::mbarrier_try_wait_parity(&full[stage], round & 1)) {}
            sum += buffer[stage][threadIdx.x - 32] * (tile + 1);
            (void)ptx::mbarrier_arrive(&empty[stage]);
        }
        sums[threadIdx.x - 32] = sum;
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, output, sums, 4 * TILE);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// Each block of a cluster of two copies half of a tile into both; each then has the whole, and tells what it makes of it.
extern "C" __global__ void __cluster_dims__(2) shared_tile(const float *input, float *output) {
    constexpr int TILE = 128;
    __shared__ alignas(128) float tile[TILE];
    __shared__ Word full;
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(tile));
    }
    cluster.sync();
    const float *source = input + (blockIdx.x / 2) * TILE + rank * TILE / 2;
    if (threadIdx.x == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile + rank * TILE / 2, source, sizeof(tile) / 2, &full,
                           static_cast<cuda::std::uint16_t>(3));
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    output[blockIdx.x * TILE + threadIdx.x] = tile[threadIdx.x ^ (rank ? TILE - 1 : 0)] + rank;
    cluster.sync();
}
