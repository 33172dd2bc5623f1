// y = GELU(W x + b), with W of m by k, x of k by n and b of m elements, all row-major.
// A block of TILE by TILE threads makes a tile of y, and brings tiles of W and x through shared memory.

#define TILE 16

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

// The row of W times the column of x that belong to this thread. All threads of the block take part.
__device__ float dot(const float *w, const float *x, int m, int n, int k, int row, int column) {
    __shared__ float w_tile[TILE][TILE];
    __shared__ float x_tile[TILE][TILE];
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        int w_column = start + threadIdx.x;
        int x_row = start + threadIdx.y;
        w_tile[threadIdx.y][threadIdx.x] = row < m && w_column < k ? w[row * k + w_column] : 0.0f;
        x_tile[threadIdx.y][threadIdx.x] = x_row < k && column < n ? x[x_row * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++) {
            sum = fmaf(w_tile[threadIdx.y][i], x_tile[i][threadIdx.x], sum);
        }
        __syncthreads();
    }
    return sum;
}

// Unfused: the product goes to memory, and comes back for the rest.
extern "C" __global__ void linear(const float *w, const float *x, float *product, int m, int n, int k) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    float sum = dot(w, x, m, n, k, row, column);
    if (row < m && column < n) {
        product[row * n + column] = sum;
    }
}

extern "C" __global__ void bias_gelu(const float *product, const float *b, float *y, int m, int n) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row < m && column < n) {
        y[row * n + column] = gelu(product[row * n + column] + b[row]);
    }
}

// Fused: the product never leaves the registers.
extern "C" __global__ void gelu_linear(const float *w, const float *x, const float *b, float *y, int m, int n,
                                       int k) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    float sum = dot(w, x, m, n, k, row, column);
    if (row < m && column < n) {
        y[row * n + column] = gelu(sum + b[row]);
    }
}
