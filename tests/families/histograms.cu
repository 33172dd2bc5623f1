#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// 64 bins of the top six bits: a byte for each bin and thread, no atomics, then a sum over the threads.
extern "C" __global__ void of_64_bins(const unsigned *words, unsigned *bins, int count) {
    __shared__ unsigned char own[64][64];
    int t = threadIdx.x;
    for (int bin = 0; bin < 64; ++bin) own[bin][t] = 0;
    for (int i = blockIdx.x * 64 + t; i < count; i += gridDim.x * 64)
        for (int byte = 0; byte < 4; ++byte) ++own[words[i] >> (8 * byte + 2) & 63][t];
    __syncthreads();
    unsigned sum = 0;
    for (int k = 0; k < 64; ++k) sum += own[t][(k + t) % 64];
    atomicAdd(&bins[t], sum);
}

// 256 bins: one copy in shared memory for each warp.
extern "C" __global__ void of_256_bins(const uchar4 *bytes, unsigned *bins, int count) {
    __shared__ unsigned own[4][256];
    for (int i = threadIdx.x; i < 1024; i += 128) (&own[0][0])[i] = 0;
    __syncthreads();
    unsigned *mine = own[threadIdx.x / 32];
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
        uchar4 four = bytes[i];
        atomicAdd(&mine[four.x], 1u); atomicAdd(&mine[four.y], 1u);
        atomicAdd(&mine[four.z], 1u); atomicAdd(&mine[four.w], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += 128)
        atomicAdd(&bins[bin], own[0][bin] + own[1][bin] + own[2][bin] + own[3][bin]);
}

// Lanes with equal keys elect one that adds for all of them.
extern "C" __global__ void by_matching_lanes(const int *keys, int *counts, int *sums, int *rounds, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned equal = __match_any_sync(__activemask(), keys[i]);
    int leader = __ffs(equal) - 1;
    int sum = 0;
    for (unsigned left = equal; left; left &= left - 1) sum += __shfl_sync(equal, i, __ffs(left) - 1);
    if (threadIdx.x % 32 == leader) {
        atomicAdd(&counts[keys[i]], __popc(equal));
        atomicAdd(&sums[keys[i]], sum);
        atomicAdd(rounds, 1);
    }
}

// Keeps what is positive: one atomic for the lanes of a branch, each lane's place by its rank.
extern "C" __global__ void keep_positive(const int *values, int *kept, int *length, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && values[i] > 0) {
        auto group = cg::coalesced_threads();
        int start = 0;
        if (group.thread_rank() == 0) start = atomicAdd(length, group.size());
        kept[group.shfl(start, 0) + group.thread_rank()] = values[i];
    }
}

// A group for each key, and one atomic for each group.
extern "C" __global__ void largest_of_buckets(const int *keys, const int *values, int *largest, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    auto group = cg::labeled_partition(cg::coalesced_threads(), keys[i]);
    int best = values[i];
    for (int step = group.size() / 2, size = group.size(); size > 1; size -= step, step = size / 2) {
        int other = group.shfl_down(best, size - step);
        if (group.thread_rank() < step && other > best) best = other;
    }
    if (group.thread_rank() == 0) atomicMax(&largest[keys[i]], best);
}
