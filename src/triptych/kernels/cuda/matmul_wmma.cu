// C = A × B by nvcuda::wmma, the C++ interface of tensor cores: f16 or bf16, f32 sums, C of any type; m, n and k are
// multiples of 16.
// Tiling: a block makes 64 × 64 of C in steps of 64 along k; each of its 4 warps 32 × 32, as 2 × 2 fragments.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int SIDE = 64, DEPTH = 64, THREADS = 128;
constexpr int PIECE = 8;    // elements of 16 bytes, the widest load
constexpr int PAD = PIECE;  // behind each row of shared memory: rows that lie below each other hit other banks

// 16 bytes of a matrix, zeros beyond its edges; read somewhere in any case, so that no thread takes a branch.
template <typename T> __device__ uint4 piece(const T *matrix, int row, int rows, int column, int columns) {
    const T *place = &matrix[size_t(min(row, rows - 1)) * columns + min(column, columns - PIECE)];
    const uint4 found = *reinterpret_cast<const uint4 *>(place);
    return row < rows && column < columns ? found : uint4{};
}

// 16 × 16 sums to C. Which lane has which of a fragment's elements is known for its own type alone: those of another
// pass through `staged`, 16 rows of shared memory that the warp has to itself. Rows lie PITCH apart and are read in
// another order than they follow each other in, that those stored and those read together lie in different banks.
constexpr int PITCH = 24;
template <typename C, typename Sums> __device__ void store_sums(C *c, const Sums &sums, int n, float *staged) {
    wmma::store_matrix_sync(staged, sums, PITCH, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < 256; i += 32) {
        const int row = i / 64 * 4 + i / 16 % 2 * 2 + i / 32 % 2, column = i % 16;
        c[size_t(row) * n + column] = C(staged[row * PITCH + column]);
    }
    __syncwarp();
}
template <typename Sums> __device__ void store_sums(float *c, const Sums &sums, int n, float *) {
    wmma::store_matrix_sync(c, sums, n, wmma::mem_row_major);
}

template <typename T, typename C>
__global__ void __launch_bounds__(THREADS) matmul_wmma(const T *a, const T *b, C *c, int m, int n, int k) {
    __shared__ __align__(128) T left[SIDE][DEPTH + PAD], right[DEPTH][SIDE + PAD];
    const int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE, warp = threadIdx.x / 32;
    const int down = warp / 2 * 32, along = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (auto &line : sums)
        for (auto &sum : line) wmma::fill_fragment(sum, 0.0f);
    for (int start = 0; start < k; start += DEPTH) {
        // Memory: 16 bytes a thread from global through registers to shared memory.
        for (int i = threadIdx.x; i < SIDE * DEPTH / PIECE; i += THREADS) {
            const int y = i / (DEPTH / PIECE), x = i % (DEPTH / PIECE) * PIECE;  // both tiles are 64 × 64
            *reinterpret_cast<uint4 *>(&left[y][x]) = piece(a, row + y, m, start + x, k);
            *reinterpret_cast<uint4 *>(&right[y][x]) = piece(b, start + y, k, column + x, n);
        }
        __syncthreads();
        // Mapping: fragments are spread over a warp's registers as the tensor core wants them; wmma knows how.
        for (int inner = 0; inner < DEPTH; inner += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> first[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> second[2];
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(first[i], &left[down + 16 * i][inner], DEPTH + PAD);
                wmma::load_matrix_sync(second[i], &right[inner][along + 16 * i], SIDE + PAD);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], first[i], second[j], sums[i][j]);
        }
        __syncthreads();  // Overlap: none within a block; nobody copies while somebody multiplies
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            const int y = row + down + 16 * i, x = column + along + 16 * j;
            if (y < m && x < n) store_sums(&c[size_t(y) * n + x], sums[i][j], n, reinterpret_cast<float *>(left) + 16 * PITCH * warp);
        }
}
