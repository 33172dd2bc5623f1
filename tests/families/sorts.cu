#define SHARED 256

__device__ void exchange(unsigned &key, unsigned &value, unsigned &other_key, unsigned &other_value, bool up) {
    if ((key > other_key) != up) return;
    unsigned k = key, v = value;
    key = other_key; value = other_value;
    other_key = k; other_value = v;
}

// Segments of `length` (a power of two up to SHARED) in shared memory, each sorted on its own.
template <bool ODD_EVEN> __global__ void network(unsigned *keys, unsigned *values, int length, bool up) {
    __shared__ unsigned k[SHARED], v[SHARED];
    int t = threadIdx.x, base = blockIdx.x * length;
    for (int i = t; i < length; i += blockDim.x) k[i] = keys[base + i], v[i] = values[base + i];
    for (int size = 2; size <= length; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            int at = 2 * t - (t & (step - 1));
            if (!ODD_EVEN) {
                bool here = up ^ ((t & (size / 2)) != 0 && size < length);
                exchange(k[at], v[at], k[at + step], v[at + step], here);
            } else if (step == size / 2) {
                exchange(k[at], v[at], k[at + step], v[at + step], up);
            } else if ((t & (size / 2 - 1)) >= step) {
                exchange(k[at - step], v[at - step], k[at], v[at], up);
            }
        }
    __syncthreads();
    for (int i = t; i < length; i += blockDim.x) keys[base + i] = k[i], values[base + i] = v[i];
}

// One step of a bitonic network over global memory.
extern "C" __global__ void bitonic_step(unsigned *keys, unsigned *values, int size, int step, int pairs) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= pairs) return;
    int at = 2 * t - (t & (step - 1));
    exchange(keys[at], values[at], keys[at + step], values[at + step], (t & (size / 2)) == 0);
}

template <typename T> __device__ int below(const T *keys, int count, T key, bool equal_too) {
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (keys[middle] < key || (equal_too && keys[middle] == key)) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Merges neighbouring runs of `width`, the last ones shorter: each element finds its place in the other run. Stable.
template <typename T> __global__ void merge_runs(const T *keys, const int *values, T *to_keys, int *to_values, int width,
                                                 int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int pair = i / (2 * width) * 2 * width, middle = min(pair + width, count), end = min(pair + 2 * width, count);
    bool left = i < middle;
    int other = left ? below(keys + middle, end - middle, keys[i], false) : below(keys + pair, middle - pair, keys[i], true);
    int place = (left ? i : i - (middle - pair)) + other;
    to_keys[place] = keys[i];
    to_values[place] = values[i];
}

// The bits of a float in the order of the numbers, -0 before 0; and back.
extern "C" __global__ void order_bits(unsigned *bits, int count, bool back) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned b = bits[i];
    if (back) bits[i] = b >> 31 ? b ^ 0x80000000u : ~b;
    else bits[i] = b >> 31 ? ~b : b ^ 0x80000000u;
}

// The 16 digits of each tile of 64 elements; digits in rows, tiles in columns.
extern "C" __global__ void count_digits(const unsigned *keys, unsigned *counts, int shift, int count) {
    __shared__ unsigned own[16];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    if (i < count) atomicAdd(&own[keys[i] >> shift & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

// What comes before each entry; one block, a chunk at a time.
extern "C" __global__ void sum_before(unsigned *counts, int count) {
    __shared__ unsigned sums[128], carry;
    if (threadIdx.x == 0) carry = 0;
    for (int start = 0; start < count; start += 128) {
        int i = start + threadIdx.x;
        unsigned own = i < count ? counts[i] : 0;
        sums[threadIdx.x] = own;
        for (int step = 1; step < 128; step *= 2) {
            __syncthreads();
            unsigned below = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
            __syncthreads();
            sums[threadIdx.x] += below;
        }
        __syncthreads();
        if (i < count) counts[i] = carry + sums[threadIdx.x] - own;
        __syncthreads();
        if (threadIdx.x == 127) carry += sums[127];
        __syncthreads();
    }
}

// Each element to its place: how many of its digit come before it, by ballots of the digit's four bits.
extern "C" __global__ void move_digits(const unsigned *keys, const unsigned *values, unsigned *to_keys, unsigned *to_values,
                                       const unsigned *starts, int shift, int count) {
    __shared__ unsigned first_warp[16];
    int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
    bool inside = i < count;
    unsigned key = inside ? keys[i] : 0, digit = key >> shift & 15, equal = __ballot_sync(0xffffffffu, inside);
    for (int bit = 0; bit < 4; ++bit) {
        unsigned ones = __ballot_sync(0xffffffffu, digit >> bit & 1);
        equal &= digit >> bit & 1 ? ones : ~ones;
    }
    if (threadIdx.x < 16) first_warp[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 32 && inside) first_warp[digit] = __popc(equal);
    __syncthreads();
    if (!inside) return;
    unsigned rank = __popc(equal & ((1u << lane) - 1)) + (threadIdx.x >= 32 ? first_warp[digit] : 0);
    unsigned place = starts[digit * gridDim.x + blockIdx.x] + rank;
    to_keys[place] = key;
    to_values[place] = values[i];
}
