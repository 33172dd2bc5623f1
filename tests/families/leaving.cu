// Threads and warps that leave before a barrier which the others reach.
extern "C" __global__ void warps_leave(int *out, int staying) {
    __shared__ int shared[256];
    int t = threadIdx.x;
    if (t / 32 >= staying) { out[blockIdx.x * 256 + t] = -1; return; }
    for (int round = 0; round < 3; ++round) {
        shared[t] = t * (round + 1);
        __syncthreads();
        out[blockIdx.x * 256 + t] = shared[staying * 32 - 1 - t];
        __syncthreads();
    }
}

// Lanes leave one after another; those that are left vote and add.
extern "C" __global__ void lanes_leave(const int *rounds, int *out, int count) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, left = t < count ? rounds[t] : 0, sum = 0;
    for (int round = 0;; ++round) {
        unsigned active = __ballot_sync(__activemask(), round < left);
        if (round >= left) break;
        sum += __popc(active);
        __syncwarp(active);
    }
    if (t < count) out[t] = sum;
}

// Of warps that leave at different rounds, the block counts who is left.
extern "C" __global__ void counted(int *out, int rounds) {
    int warp = threadIdx.x / 32;
    for (int round = 0; round < rounds; ++round) {
        if (warp < round) return;
        int here = __syncthreads_count(threadIdx.x % 2), all = __syncthreads_and(warp >= round), any = __syncthreads_or(warp == 0);
        if (threadIdx.x % 32 == 0) out[round * 8 + warp] = here * 4 + all * 2 + any;
    }
}

// Half of the warps make, half use, by named barriers; makers leave first.
extern "C" __global__ void make_and_use(const int *input, int *output, int rounds) {
    __shared__ int ring[2][32];
    int lane = threadIdx.x % 32;
    for (int round = 0; round < rounds; ++round) {
        int slot = round & 1;
        if (threadIdx.x < 32) {
            if (round >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + slot) : "memory");
            ring[slot][lane] = input[round * 32 + lane] * 3;
            asm volatile("bar.arrive %0, 64;" ::"r"(1 + slot) : "memory");
        } else {
            asm volatile("bar.sync %0, 64;" ::"r"(1 + slot) : "memory");
            output[round * 32 + lane] = ring[slot][31 - lane];
            if (round + 2 < rounds) asm volatile("bar.arrive %0, 64;" ::"r"(3 + slot) : "memory");
        }
    }
}
