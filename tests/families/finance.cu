__device__ float normal_distribution(float d) { return 0.5f * erfcf(-d * 0.70710678f); }

// European calls and puts; `years` 0 is worth what is exercised now.
extern "C" __global__ void black_scholes(const float *prices, const float *strikes, const float *years, float *calls,
                                         float *puts, float rate, float volatility, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float s = prices[i], x = strikes[i], t = years[i], root = volatility * sqrtf(t);
        float d = (__logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / root;
        float discounted = x * __expf(-rate * t), up = normal_distribution(d), later = normal_distribution(d - root);
        calls[i] = t > 0 ? s * up - discounted * later : fmaxf(s - x, 0.0f);
        puts[i] = t > 0 ? discounted * (1 - later) - s * (1 - up) : fmaxf(x - s, 0.0f);
    }
}

// A generator by counter: ten rounds that multiply and change halves; the key grows by a constant each round.
__host__ __device__ inline uint4 scrambled(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        unsigned long long first = 0xD2511F53ull * counter.x, second = 0xCD9E8D57ull * counter.z;
        counter = make_uint4((unsigned)(second >> 32) ^ counter.y ^ key.x, (unsigned)second,
                             (unsigned)(first >> 32) ^ counter.w ^ key.y, (unsigned)first);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

extern "C" __global__ void random_words(uint4 *words, uint2 key, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) words[i] = scrambled(make_uint4(i, 0, 7, ~i), key);
}

// A quarter of a circle: each thread's points, a sum of each warp's hits by one atomic of 64 bits.
extern "C" __global__ void circle(unsigned long long *hits, uint2 key, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned own = 0;
    for (int round = 0; round < rounds; ++round) {
        uint4 r = scrambled(make_uint4(i, round, 0, 0), key);
        float x = (r.x >> 8) * 0x1p-24f, y = (r.y >> 8) * 0x1p-24f;
        own += x * x + y * y < 1;
    }
    own = __reduce_add_sync(0xffffffffu, own);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)own);
}

// A call by paths: normal numbers by Box and Muller; sums of values and of squares in double precision.
extern "C" __global__ void paths(double2 *sums, uint2 key, float price, float strike, float drift, float spread, int count) {
    __shared__ double2 shared[64];
    double2 own = make_double2(0, 0);
    for (int i = threadIdx.x; i < count; i += 64) {
        uint4 r = scrambled(make_uint4(i, blockIdx.x, 0, 0), key);
        float u = ((r.x >> 8) + 1) * 0x1p-24f, angle = (r.y >> 8) * 0x1p-23f;
        float gauss = sqrtf(-2 * logf(u)) * cospif(angle);
        double value = fmaxf(price * expf(drift + spread * gauss) - strike, 0.0f);
        own.x += value;
        own.y += value * value;
    }
    shared[threadIdx.x] = own;
    for (int width = 32; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width) {
            shared[threadIdx.x].x += shared[threadIdx.x + width].x;
            shared[threadIdx.x].y += shared[threadIdx.x + width].y;
        }
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = shared[0];
}

// American or European puts by a tree of STEPS steps; a block each, the layer before in shared memory.
template <int STEPS, bool AMERICAN>
__global__ void by_tree(const float *prices, float *values, float strike, float up, float likely, float unlikely) {
    __shared__ float layer[STEPS + 1];
    int i = threadIdx.x;
    float price = prices[blockIdx.x], own = fmaxf(strike - price * powf(up, 2 * i - STEPS), 0.0f);
    if (i <= STEPS) layer[i] = own;
    for (int step = STEPS - 1; step >= 0; --step) {
        __syncthreads();
        if (i <= step) {
            own = likely * layer[i + 1] + unlikely * layer[i];
            if (AMERICAN) own = fmaxf(own, strike - price * powf(up, 2 * i - step));
        }
        __syncthreads();
        if (i <= step) layer[i] = own;
    }
    if (i == 0) values[blockIdx.x] = own;
}
