// Whole kernels of the cases, as their users write them.
#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float axpy(float a, float x, float y) { return fmaf(a, x, y); }
__device__ double axpy(double a, double x, double y) { return fma(a, x, y); }
__device__ __half axpy(__half a, __half x, __half y) { return __hfma(a, x, y); }
__device__ __nv_bfloat16 axpy(__nv_bfloat16 a, __nv_bfloat16 x, __nv_bfloat16 y) { return __hfma(a, x, y); }

template <typename T> __global__ void saxpy(int n, T a, const T *x, T *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = axpy(a, x[i], y[i]);
}

extern "C" __global__ void grid_stride(const float *x, float *y, int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) y[i] = 2.0f * x[i] + 1.0f;
}

#define TILE 16
extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        int inner = start + threadIdx.x, outer = start + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && inner < k ? a[row * k + inner] : 0.0f;
        b_tile[threadIdx.y][threadIdx.x] = outer < k && column < n ? b[outer * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// A block a row; one float of dynamic shared memory a thread.
extern "C" __global__ void softmax(const float *x, float *y, int columns) {
    extern __shared__ float part[];
    const float *row = x + (size_t)blockIdx.x * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
    part[threadIdx.x] = most;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    most = part[0];
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - most);
    part[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[(size_t)blockIdx.x * columns + i] = expf(row[i] - most) / part[0];
}

extern "C" __global__ void reduce(const float *x, float *total, int n) {
    __shared__ float part[32];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
        if (threadIdx.x == 0) atomicAdd(total, sum);
    }
}

extern "C" __global__ void histogram(const unsigned char *data, int n, unsigned *bins) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// Steps of 3n + 1 until 1 is reached: every lane loops its own number of times.
extern "C" __global__ void collatz(const unsigned *start, int *steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long value = start[i];
    int count = 0;
    while (value != 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        count++;
    }
    steps[i] = count;
}

extern "C" __global__ void choose(const int *kind, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    switch (kind[i]) {
        case 0: v = v * v; break;
        case 1: v = sqrtf(fabsf(v)); break;
        case 2: v = -v;  // falls through
        case 3: v = v + 1.0f; break;
        case 5: v = floorf(v); break;
        case 7: v = v > 0.0f ? 1.0f / (1.0f + v) : v; break;
        case 100: v = 100.0f; break;
        default: v = -7.0f;
    }
    y[i] = v;
}

// The first place of `wanted` in each row of 64, -1 where there is none.
extern "C" __global__ void find(const int *rows, int *place, int wanted, int count) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    #pragma unroll 1
    for (int i = 0; i < 64; i++) {
        if (rows[row * 64 + i] == wanted) {
            place[row] = i;
            return;
        }
    }
    place[row] = -1;
}

extern "C" __global__ void scale4(const float4 *x, float4 *y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = x[i];
        y[i] = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
    }
}

// Indices that do not fit 32 bits: `origin` is that far below the array.
extern "C" __global__ void far(const float *origin, float *y, long long shift, int n) {
    long long i = shift + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < shift + n) y[i - shift] = origin[i] + 1.0f;
}

// The median of nine, by sorting a local array at places that are not known when compiling.
extern "C" __global__ void median(const float *x, float *y, const int *order, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float own[9];
    #pragma unroll 1
    for (int k = 0; k < 9; k++) own[order[k]] = x[i * 9 + k];
    #pragma unroll 1
    for (int k = 1; k < 9; k++) {
        float v = own[k];
        int j = k;
        while (j > 0 && own[j - 1] > v) {
            own[j] = own[j - 1];
            j--;
        }
        own[j] = v;
    }
    y[i] = own[4];
}

extern "C" __global__ void places(int *out) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int threads = blockDim.x * blockDim.y * blockDim.z;
    int *own = out + (block * threads + thread) * 6;
    own[0] = blockIdx.x, own[1] = blockIdx.y, own[2] = blockIdx.z;
    own[3] = threadIdx.x, own[4] = threadIdx.y, own[5] = threadIdx.z;
}
