// Products of matrices by tensor cores, as nvcuda::wmma has them, of each element type.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// C = A B + C; A is m × k and B k × n, by rows. A block of four warps makes a tile of 32 × 32, each warp 16 × 16 of it.
template <typename T, typename S, int K>
__global__ void by_wmma(const T *a, const T *b, S *c, int m, int n, int k) {
    __shared__ __align__(32) T left[32][K + 16];
    __shared__ __align__(32) T right[K][32 + 16];
    __shared__ __align__(32) S sums[32][32 + 8];
    const int row = blockIdx.y * 32, column = blockIdx.x * 32, warp = threadIdx.x / 32;
    const int down = warp / 2 * 16, along = warp % 2 * 16;
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) {
        const int y = i / 32, x = i % 32;
        sums[y][x] = row + y < m && column + x < n ? c[(row + y) * n + column + x] : S(0);
    }
    __syncthreads();
    wmma::fragment<wmma::accumulator, 16, 16, 16, S> total;
    wmma::load_matrix_sync(total, &sums[down][along], 40, wmma::mem_row_major);
    for (int start = 0; start < k; start += K) {
        for (int i = threadIdx.x; i < 32 * K; i += blockDim.x) {
            const int y = i / K, x = i % K;
            left[y][x] = row + y < m && start + x < k ? a[(row + y) * k + start + x] : T(0);
            right[i / 32][i % 32] = start + i / 32 < k && column + i % 32 < n ? b[(start + i / 32) * n + column + i % 32] : T(0);
        }
        __syncthreads();
        for (int step = 0; step < K; step += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> first;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> second;
            wmma::load_matrix_sync(first, &left[down][step], K + 16);
            wmma::load_matrix_sync(second, &right[step][along], 48);
            wmma::mma_sync(total, first, second, total);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(&sums[down][along], total, 40, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) {
        const int y = i / 32, x = i % 32;
        if (row + y < m && column + x < n) c[(row + y) * n + column + x] = sums[y][x];
    }
}

// Singles, rounded to tf32 in the fragments; the matrices' sides are multiples of 16 (of 8 along k).
__global__ void by_tf32(const float *a, const float *b, float *c, int n, int k) {
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> total;
    wmma::fill_fragment(total, 0.0f);
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int start = 0; start < k; start += 8) {
        wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> first;
        wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> second;
        wmma::load_matrix_sync(first, a + row * k + start, k);
        wmma::load_matrix_sync(second, b + column * k + start, k);
        for (int i = 0; i < first.num_elements; ++i) first.x[i] = wmma::__float_to_tf32(first.x[i]);
        for (int i = 0; i < second.num_elements; ++i) second.x[i] = wmma::__float_to_tf32(second.x[i]);
        wmma::mma_sync(total, first, second, total);
    }
    wmma::store_matrix_sync(c + row * n + column, total, n, wmma::mem_row_major);
}
