// Products of matrices by tensor cores: nvcuda::wmma, and mma.sync fed by cp.async and ldmatrix.

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

__device__ unsigned shared_address(const void *place) { return static_cast<unsigned>(__cvta_generic_to_shared(place)); }

// 16 bytes to shared memory, those from `bytes` on as zeros.
__device__ void copy(void *target, const void *source, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)), "l"(source), "r"(bytes));
}

// C = A Bᵀ; A is m × k, B n × k, both by rows, k a multiple of 8. Two warps make a tile of 32 × 32 in two stages; shared
// memory is swizzled by pieces of 16 bytes.
__global__ void by_mma(const half *a, const half *b, float *c, int m, int n, int k) {
    constexpr int DEPTH = 32;
    __shared__ __align__(16) half tiles[2][2][32][DEPTH];
    const int row = blockIdx.y * 32, column = blockIdx.x * 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    auto fetch = [&](int stage, int start) {
        for (int i = threadIdx.x; i < 2 * 32 * DEPTH / 8; i += blockDim.x) {
            const int which = i / (32 * DEPTH / 8), line = i / (DEPTH / 8) % 32, piece = i % (DEPTH / 8);
            const int at = (which ? column : row) + line, inner = start + piece * 8;
            const bool there = at < (which ? n : m) && inner < k;
            const half *source = (which ? b : a) + (there ? at * k + inner : 0);
            copy(&tiles[stage][which][line][(piece ^ (line >> 1 & 3)) * 8], source, there ? 16 : 0);
        }
        asm volatile("cp.async.commit_group;");
    };
    float sums[4][4] = {};
    const int steps = (k + DEPTH - 1) / DEPTH;
    fetch(0, 0);
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) fetch((step + 1) & 1, (step + 1) * DEPTH);
        else asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        for (int inner = 0; inner < DEPTH; inner += 16) {
            unsigned left[4], right[2][4];
            const int line = warp * 16 + lane % 16, piece = inner / 8 + lane / 16;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3])
                         : "r"(shared_address(&tiles[step & 1][0][line][(piece ^ (line >> 1 & 3)) * 8])));
            for (int pair = 0; pair < 2; ++pair) {
                const int other = pair * 16 + lane % 8 + lane / 16 * 8, part = inner / 8 + lane / 8 % 2;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(right[pair][0]), "=r"(right[pair][1]), "=r"(right[pair][2]), "=r"(right[pair][3])
                             : "r"(shared_address(&tiles[step & 1][1][other][(part ^ (other >> 1 & 3)) * 8])));
            }
            for (int i = 0; i < 4; ++i)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
                             " {%8, %9}, {%0, %1, %2, %3};"
                             : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
                             : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[i / 2][i % 2 * 2]),
                               "r"(right[i / 2][i % 2 * 2 + 1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int y = row + warp * 16 + lane / 4 + j / 2 * 8, x = column + i * 8 + lane % 4 * 2 + j % 2;
            if (y < m && x < n) c[y * n + x] = sums[i][j];
        }
}
