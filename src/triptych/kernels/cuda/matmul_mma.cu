// C = A × B by mma.sync, fed by cp.async and ldmatrix in a pipeline of stages: f16 or bf16, f32 sums, C of any type; n
// and k are multiples of 8 (the 16 bytes of a copy), m is any.
// Tiling: a block makes 128 × 128 of C in steps of 32 along k; each of its 4 warps 64 × 64, in registers.
#include "ampere.cuh"
#include "packs.cuh"

constexpr int SIDE = 128, DEPTH = 32, STAGES = 3, THREADS = 128;
constexpr int PIECE = 8;  // elements of 16 bytes

template <typename T> struct Stage {
    T a[SIDE][DEPTH], b[DEPTH][SIDE];
};

// Memory: shared memory has 32 banks of 4 bytes, so 8 lanes that read 16 bytes each (a phase of ldmatrix) must hit 8
// different chunks of 128 bytes. Rows of A are 64 bytes, two to a line of banks; those of B 256. The exclusive-or puts
// the same piece of rows that follow each other into different chunks, and costs no memory as padding does.
template <typename T> __device__ T *at_a(Stage<T> &stage, int row, int piece) {
    return &stage.a[row][(piece ^ (row / 2 % 4)) * PIECE];
}
template <typename T> __device__ T *at_b(Stage<T> &stage, int row, int piece) {
    return &stage.b[row][(piece ^ (row % 8)) * PIECE];
}

template <typename T, typename C>
__global__ void __launch_bounds__(THREADS) matmul_mma(const T *a, const T *b, C *c, int m, int n, int k) {
    extern __shared__ __align__(128) char shared[];
    auto *stages = reinterpret_cast<Stage<T> *>(shared);
    const int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int down = warp / 2 * 64, along = warp % 2 * 64;

    // Overlap: copies run beside the multiplications, STAGES - 1 steps ahead; the hardware writes shared memory itself.
    auto fetch = [&](int step) {
        Stage<T> &stage = stages[step % STAGES];
        const int start = step * DEPTH;
        for (int i = 0; i < SIDE * DEPTH / PIECE / THREADS; ++i) {
            const int number = i * THREADS + threadIdx.x;
            const int y = number / (DEPTH / PIECE), x = number % (DEPTH / PIECE), line = start + x * PIECE;
            copy_async(shared_address(at_a(stage, y, x)), a + size_t(min(row + y, m - 1)) * k + min(line, k - PIECE),
                       row + y < m && line < k);
            const int inner = number / (SIDE / PIECE), across = number % (SIDE / PIECE);
            const int below = start + inner, place = column + across * PIECE;
            copy_async(shared_address(at_b(stage, inner, across)),
                       b + size_t(min(below, k - 1)) * n + min(place, n - PIECE), below < k && place < n);
        }
    };
    const int steps = (k + DEPTH - 1) / DEPTH;
    for (int step = 0; step < STAGES - 1; ++step) {
        if (step < steps) fetch(step);
        commit_copies();
    }

    float sums[4][8][4] = {};  // 64 × 64 as 4 × 8 tiles of 16 × 8
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        wait_copies<STAGES - 2>();  // this thread's part of the step is there …
        __syncthreads();            // … and everybody's; and all are done with the stage that is filled next
        if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
        commit_copies();  // an empty group at the end keeps the count
        Stage<T> &stage = stages[step % STAGES];
#pragma unroll
        for (int inner = 0; inner < DEPTH; inner += 16) {
            // Mapping: lane l names row l % 16 of a tile, in its left or its right half of 8: ldmatrix deals them out.
            uint32_t left[4][4], right[4][4];
            for (int i = 0; i < 4; ++i)
                load_matrices(left[i],
                              shared_address(at_a(stage, down + 16 * i + lane % 16, inner / PIECE + lane / 16)));
            for (int j = 0; j < 4; ++j)  // B lies by rows, and mma wants columns: transposed on the way
                load_transposed(right[j],
                                shared_address(at_b(stage, inner + lane % 16, along / PIECE + 2 * j + lane / 16)));
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 8; ++j)
                    multiply<T>(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
        }
    }

    for (int i = 0; i < 8; ++i) {
        const int y = row + down + 8 * i + lane / 4;
        if (y >= m) return;
        for (int j = 0; j < 8 && column + along + 8 * j < n; ++j)  // of f32, 4 lanes fill a sector of 32 bytes
            store(&c[size_t(y) * n + column + along + 8 * j + lane % 4 * 2],
                  Pack<C, 2>{C(sums[i / 2][j][i % 2 * 2]), C(sums[i / 2][j][i % 2 * 2 + 1])});
    }
}
