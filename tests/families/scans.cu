// Running sums of one block, twice the block's elements in two halves that change places (Hillis and Steele).
extern "C" __global__ void hillis_steele(const int *input, int *output, int count) {
    extern __shared__ int halves[];
    int at = threadIdx.x, from = 0;
    halves[at] = at < count ? input[at] : 0;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        int own = halves[from * blockDim.x + at];
        if (at >= step) own += halves[from * blockDim.x + at - step];
        from = 1 - from;
        halves[from * blockDim.x + at] = own;
        __syncthreads();
    }
    if (at < count) output[at] = halves[from * blockDim.x + at];
}

// Sums of what comes before each element, up a tree and down again (Blelloch); 2 elements a thread, padded against
// bank conflicts. `totals` gets each block's sum.
#define PADDED(i) ((i) + (i) / 32)
template <typename T, int THREADS> __global__ void blelloch(const T *input, T *output, T *totals, int count) {
    __shared__ T tree[PADDED(2 * THREADS) + 1];
    int base = blockIdx.x * 2 * THREADS, t = threadIdx.x;
    for (int half = 0; half < 2; ++half) {
        int i = t + half * THREADS;
        tree[PADDED(i)] = base + i < count ? input[base + i] : T(0);
    }
    int step = 1;
    for (int nodes = THREADS; nodes > 0; nodes /= 2, step *= 2) {
        __syncthreads();
        if (t < nodes) tree[PADDED(step * (2 * t + 2) - 1)] += tree[PADDED(step * (2 * t + 1) - 1)];
    }
    if (t == 0) {
        totals[blockIdx.x] = tree[PADDED(2 * THREADS - 1)];
        tree[PADDED(2 * THREADS - 1)] = 0;
    }
    for (int nodes = 1; nodes <= THREADS; nodes *= 2) {
        step /= 2;
        __syncthreads();
        if (t < nodes) {
            int left = PADDED(step * (2 * t + 1) - 1), right = PADDED(step * (2 * t + 2) - 1);
            T before = tree[left];
            tree[left] = tree[right];
            tree[right] += before;
        }
    }
    __syncthreads();
    for (int half = 0; half < 2; ++half) {
        int i = t + half * THREADS;
        if (base + i < count) output[base + i] = tree[PADDED(i)];
    }
}

template <typename T> __global__ void add_to_blocks(T *output, const T *before, int width, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[i] += before[i / width];
}

__device__ int scan_warp(int value, int width) {
    int lane = threadIdx.x % width;
    for (int step = 1; step < width; step *= 2) {
        int below = __shfl_up_sync(0xffffffffu, value, step, width);
        if (lane >= step) value += below;
    }
    return value;
}

// Four elements a thread by one 128-bit load, scanned by shuffles; the warps' sums in a warp of their own.
extern "C" __global__ void by_shuffles(const int4 *input, int4 *output, int count) {
    __shared__ int warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int4 own = i < count ? input[i] : make_int4(0, 0, 0, 0);
    own.y += own.x; own.z += own.y; own.w += own.z;
    int through = scan_warp(own.w, 32);
    if (lane == 31) warps[warp] = through;
    __syncthreads();
    if (warp == 0) warps[lane] = scan_warp(lane < blockDim.x / 32 ? warps[lane] : 0, 32);
    __syncthreads();
    int before = through - own.w + (warp ? warps[warp - 1] : 0);
    if (i < count) output[i] = make_int4(own.x + before, own.y + before, own.z + before, own.w + before);
}

// Segments of 8 lanes, each with a sum of its own.
extern "C" __global__ void segments_of_eight(int *values) { values[threadIdx.x] = scan_warp(values[threadIdx.x], 8); }

// x -> scale * x + offset over whole numbers that wrap: its composition does not commute.
struct alignas(8) Affine { unsigned scale, offset; };
__device__ Affine then(Affine first, Affine second) {
    return {first.scale * second.scale, second.scale * first.offset + second.offset};
}

#define TILE 128
enum { NOTHING, OWN, ALL };

// One pass over all tiles: each looks back over those before it until one knows everything up to its end.
extern "C" __global__ void look_back(const Affine *input, Affine *output, volatile int *states, volatile Affine *own_of,
                                     volatile Affine *all_of, unsigned *tickets, int count) {
    __shared__ Affine shared[2][TILE];
    __shared__ Affine before;
    __shared__ int ticket;
    int t = threadIdx.x, from = 0;
    if (t == 0) ticket = atomicAdd(tickets, 1u);
    __syncthreads();
    int tile = ticket, i = tile * TILE + t;
    shared[0][t] = i < count ? input[i] : Affine{1, 0};
    __syncthreads();
    for (int step = 1; step < TILE; step *= 2, from = 1 - from) {
        Affine own = shared[from][t];
        shared[1 - from][t] = t >= step ? then(shared[from][t - step], own) : own;
        __syncthreads();
    }
    if (t == 0) {
        Affine total = shared[from][TILE - 1], sum = {1, 0};
        own_of[tile].scale = total.scale; own_of[tile].offset = total.offset;
        __threadfence();
        states[tile] = OWN;
        for (int k = tile - 1; k >= 0; --k) {
            int state;
            while ((state = states[k]) == NOTHING) { }
            __threadfence();
            volatile Affine &known = state == ALL ? all_of[k] : own_of[k];
            Affine part = {known.scale, known.offset};
            sum = then(part, sum);
            if (state == ALL) break;
        }
        before = sum;
        Affine through = then(sum, total);
        all_of[tile].scale = through.scale; all_of[tile].offset = through.offset;
        __threadfence();
        states[tile] = ALL;
    }
    __syncthreads();
    if (i < count) output[i] = then(before, shared[from][t]);
}

// The same with state and sum in one 64-bit word, and a warp that looks at 32 tiles at once.
extern "C" __global__ void look_back_by_warps(const unsigned *input, unsigned *output, unsigned long long *words, int count) {
    __shared__ unsigned before;
    int tile = blockIdx.x, lane = threadIdx.x, i = tile * 32 + lane;
    unsigned own = scan_warp(i < count ? input[i] : 0, 32);
    unsigned total = __shfl_sync(0xffffffffu, own, 31), sum = 0;
    if (lane == 0) atomicExch(&words[tile], (unsigned long long)(tile ? OWN : ALL) << 32 | total);
    for (int end = tile - 1; end >= 0; end -= 32) {
        int k = end - lane;
        unsigned long long word;
        do word = k >= 0 ? atomicAdd(&words[k], 0ull) : (unsigned long long)ALL << 32;
        while (__any_sync(0xffffffffu, word >> 32 == NOTHING));
        unsigned complete = __ballot_sync(0xffffffffu, word >> 32 == ALL);
        int nearest = __ffs(complete) - 1;
        unsigned part = complete == 0 || lane <= nearest ? (unsigned)word : 0;
        for (int step = 16; step > 0; step /= 2) part += __shfl_down_sync(0xffffffffu, part, step);
        sum += part;
        if (complete) break;
    }
    if (lane == 0) {
        before = sum;
        atomicExch(&words[tile], (unsigned long long)ALL << 32 | (sum + total));
    }
    __syncwarp();
    if (i < count) output[i] = before + own;
}
