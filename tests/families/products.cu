// C (m x n) = A (m x k) B (k x n) by square tiles; rows of A, B and C are lda, ldb and ldc elements apart.
template <typename T, int TILE>
__global__ void by_tiles(const T *A, const T *B, T *C, int m, int n, int k, int lda, int ldb, int ldc) {
    __shared__ T a[TILE][TILE], b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    T sum = 0;
    for (int start = 0; start < k; start += TILE) {
        int x = start + threadIdx.x, y = start + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < m && x < k ? A[row * lda + x] : T(0);
        b[threadIdx.y][threadIdx.x] = y < k && column < n ? B[y * ldb + column] : T(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) C[row * ldc + column] = sum;
}

// Each thread EACH x EACH results in registers; two stages of shared memory; the depth a multiple of 8, 4 at a time.
template <int EACH> __global__ void by_registers(const float *A, const float *B, float *C, int m, int n, int k) {
    constexpr int SIDE = 8 * EACH, DEPTH = 8;
    __shared__ float a[2][DEPTH][SIDE + 4], b[2][DEPTH][SIDE];
    int tx = threadIdx.x % 8, ty = threadIdx.x / 8, row = blockIdx.y * SIDE, column = blockIdx.x * SIDE;
    float sums[EACH][EACH] = {};
    for (int step = 0; step < k / DEPTH; ++step) {
        int stage = step & 1;
        for (int i = threadIdx.x; i < SIDE * 2; i += 64) {
            int r = i / 2, d = i % 2 * 4;
            float4 four = row + r < m ? *(const float4 *)&A[(row + r) * k + step * DEPTH + d] : make_float4(0, 0, 0, 0);
            a[stage][d][r] = four.x; a[stage][d + 1][r] = four.y;
            a[stage][d + 2][r] = four.z; a[stage][d + 3][r] = four.w;
        }
        for (int i = threadIdx.x; i < SIDE * DEPTH; i += 64) {
            int c = i % SIDE, d = i / SIDE;
            b[stage][d][c] = column + c < n ? B[(step * DEPTH + d) * n + column + c] : 0;
        }
        __syncthreads();
#pragma unroll 1
        for (int d = 0; d < DEPTH; ++d)
#pragma unroll
            for (int i = 0; i < EACH; ++i)
#pragma unroll
                for (int j = 0; j < EACH; ++j) sums[i][j] += a[stage][d][ty * EACH + i] * b[stage][d][tx + 8 * j];
    }
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) {
            int r = row + ty * EACH + i, c = column + tx + 8 * j;
            if (r < m && c < n) C[r * n + c] = sums[i][j];
        }
}
