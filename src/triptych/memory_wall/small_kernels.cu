// The least kernels that show what a warp's addresses and branches cost.

// COUNT elementwise steps on n elements, a thread an element.
extern "C" __global__ void steps(const float *x, float *y, int n, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int step = 0; step < count; ++step) v = 0.5f * v + 1.0f;
    y[i] = v;
}

// Every stride-th element of x, one after the other, to y.
extern "C" __global__ void strided(const float *x, float *y, int stride) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[size_t(i) * stride];
}

// ROUNDS products and sums for each thread, of which neighbours take other paths: as many as `paths` in a warp.
extern "C" __global__ void divergent(float *x, int paths, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int path = 0; path < paths; ++path)
        if (threadIdx.x % paths == path)
            for (int round = 0; round < rounds; ++round) v = 0.5f * v + float(path);
    x[i] = v;
}

// A warp's words to shared memory and back, `stride` words apart.
extern "C" __global__ void banked(float *x, int stride) {
    __shared__ float words[32 * 64];
    words[threadIdx.x * stride] = x[threadIdx.x];
    __syncwarp();
    x[threadIdx.x] = words[threadIdx.x * stride];
}
