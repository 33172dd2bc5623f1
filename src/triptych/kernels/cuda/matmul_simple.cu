// C = A × B without tensor cores: the two lower rungs of the ladder. A is m × k, B k × n, C m × n, all by rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Mapping: a thread for each element of C; neighbours along x take neighbouring columns, so that B and C are coalesced.
// Memory: each thread reads a row of A and a column of B from global memory: 2 loads for each multiplication.
template <typename T, typename C> __global__ void matmul_naive(const T *a, const T *b, C *c, int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += float(a[size_t(row) * k + i]) * float(b[size_t(i) * n + column]);
    c[size_t(row) * n + column] = C(sum);
}

// An element of a matrix, 0 beyond its edges; read somewhere in any case, so that no thread takes a branch.
template <typename T> __device__ float element(const T *matrix, int row, int rows, int column, int columns) {
    const T found = matrix[size_t(min(row, rows - 1)) * columns + min(column, columns - 1)];
    return row < rows && column < columns ? float(found) : 0.0f;
}

// Tiling: a block makes 64 × 128 of C in steps of DEPTH along k; each of its 32 × 8 threads 8 × 4 of it.
// Memory: what a step needs of A and B is read once into shared memory, and a thread's operands from there into
// registers: 12 loads for 32 multiplications. A lies by columns, so that all of a warp read one word, a broadcast.
// Mapping: neighbouring threads have neighbouring columns, which neither shared memory's banks nor C's sectors mind.
// Overlap: none within a block: all wait for the copy. That of other blocks of the multiprocessor hides it.
template <typename T, typename C> __global__ void matmul_tiled(const T *a, const T *b, C *c, int m, int n, int k) {
    constexpr int DOWN = 8, ALONG = 4, ROWS = 8 * DOWN, COLUMNS = 32 * ALONG, DEPTH = 16;
    __shared__ float left[DEPTH][ROWS + 2], right[DEPTH][COLUMNS];  // + 2: a turned copy hits 32 banks
    const int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS, rank = threadIdx.y * 32 + threadIdx.x;
    float sums[DOWN][ALONG] = {};
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = rank; i < ROWS * DEPTH; i += 256)
            left[i % DEPTH][i / DEPTH] = element(a, row + i / DEPTH, m, start + i % DEPTH, k);
        for (int i = rank; i < DEPTH * COLUMNS; i += 256)
            right[i / COLUMNS][i % COLUMNS] = element(b, start + i / COLUMNS, k, column + i % COLUMNS, n);
        __syncthreads();
#pragma unroll 2
        for (int inner = 0; inner < DEPTH; ++inner)
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
                for (int j = 0; j < ALONG; ++j)
                    sums[i][j] += left[inner][threadIdx.y + 8 * i] * right[inner][threadIdx.x + 32 * j];
        __syncthreads();
    }
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ALONG; ++j) {
            const int y = row + threadIdx.y + 8 * i, x = column + threadIdx.x + 32 * j;
            if (y < m && x < n) c[size_t(y) * n + x] = C(sums[i][j]);
        }
}
