// y = GELU(W x + b), with W of m by k in rows, x of k elements, b and y of m: three kernels, and one.

__device__ float gelu_of(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

// A row of W times x, by one warp; the sum is in every lane.
__device__ float row_times(const float *w, const float *x, int row, int k) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < k; i += 32) {
        sum = fmaf(w[row * k + i], x[i], sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    return sum;
}

// Unfused: z = W x goes to memory, comes back to become v = z + b, which goes and comes once more. A warp a row:
extern "C" __global__ void matvec(const float *w, const float *x, float *z, int m, int k) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= m) {
        return;
    }
    float sum = row_times(w, x, row, k);
    if (threadIdx.x == 0) {
        z[row] = sum;
    }
}

// A thread an element:
extern "C" __global__ void add_bias(const float *z, const float *b, float *v, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) {
        v[i] = z[i] + b[i];
    }
}

extern "C" __global__ void gelu(const float *v, float *y, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) {
        y[i] = gelu_of(v[i]);
    }
}

// Fused: neither z nor v leaves the registers. A warp a row:
extern "C" __global__ void gelu_linear(const float *w, const float *x, const float *b, float *y, int m, int k) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= m) {
        return;
    }
    float sum = row_times(w, x, row, k);
    if (threadIdx.x == 0) {
        y[row] = gelu_of(sum + b[row]);
    }
}
