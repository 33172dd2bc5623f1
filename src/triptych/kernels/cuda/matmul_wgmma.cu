// C = A × B for sm_90a: a warp has tiles copied by TMA into a ring, two warpgroups multiply them by wgmma. f16 or bf16,
// f32 sums, C of any type; n and k are multiples of 8 (the 16 bytes of a tensor map's strides), m is any.
// Tiling: a block makes 128 × 128 of C in steps of 64 along k; each of two warpgroups 64 × 128, in registers.
#include "hopper.cuh"
#include "packs.cuh"

constexpr int SIDE = 128, DEPTH = 64, STAGES = 4, CONSUMERS = 256, THREADS = CONSUMERS + 32;
constexpr int CHUNK = 64;  // elements of 128 bytes, as far as a swizzle goes

// Memory: TMA swizzles boxes of rows of 128 bytes as wgmma reads them: without bank conflicts, past the registers.
template <typename T> struct Ring {
    alignas(1024) T a[STAGES][SIDE][DEPTH];
    alignas(1024) T b[STAGES][SIDE / CHUNK][DEPTH][CHUNK];
    Barrier full[STAGES], empty[STAGES];
};

// Mapping: one thread of the last warp orders all copies. It is as many steps ahead as the ring has stages.
template <typename T>
__device__ void produce(Ring<T> &ring, const CUtensorMap &a, const CUtensorMap &b, int row, int column, int steps) {
    for (int step = 0; step < steps; ++step) {
        const int slot = step % STAGES, round = step / STAGES;
        Barrier &full = ring.full[slot];
        ring.empty[slot].wait(round % 2 ^ 1);
        full.arrive_and_expect(sizeof ring.a[slot] + sizeof ring.b[slot]);
        copy_box(ring.a[slot], a, step * DEPTH, row, full);
        for (int i = 0; i < SIDE / CHUNK; ++i) copy_box(ring.b[slot][i], b, column + i * CHUNK, step * DEPTH, full);
    }
}

// Overlap: products run beside the copies, and a step's are issued before those of the step before are done.
template <typename T> __device__ void consume(float (&sums)[SIDE / 8][4], Ring<T> &ring, int steps) {
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    for (int step = 0; step < steps; ++step) {
        const int slot = step % STAGES;
        ring.full[slot].wait(step / STAGES % 2);
        const uint64_t left = matrix(ring.a[slot][64 * group]), right = matrix(ring.b[slot], sizeof ring.b[slot][0]);
        fence_products();
        for (int i = 0; i < DEPTH / 16; ++i)
            multiply<T, 1>(sums, left + i * ALONG_ROWS, right + i * ALONG_COLUMNS, step + i > 0);
        commit_products();
        wait_products<1>();
        if (step > 0) ring.empty[(step - 1) % STAGES].arrive(lane == 0);
    }
    wait_products<0>();
    hold(sums);
}

template <typename T, typename C>
__global__ void __launch_bounds__(THREADS)
    matmul_wgmma(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, C *c, int m, int n,
                 int k) {
    extern __shared__ __align__(1024) char shared[];
    auto &ring = *reinterpret_cast<Ring<T> *>(shared);
    const int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE, steps = (k + DEPTH - 1) / DEPTH;
    for (int i = 0; i < STAGES; ++i) {
        ring.full[i].init(1, threadIdx.x == 0);
        ring.empty[i].init(CONSUMERS / 32, threadIdx.x == 0);
    }
    publish_barriers();
    __syncthreads();
    if (threadIdx.x >= CONSUMERS) {
        if (threadIdx.x == CONSUMERS) produce(ring, a, b, row, column, steps);
        return;
    }
    float sums[SIDE / 8][4];
    consume(sums, ring, steps);

    const int lane = threadIdx.x % 32;
    for (int lower = 0; lower < 2; ++lower) {
        const int y = row + threadIdx.x / 32 * 16 + lane / 4 + 8 * lower;
        if (y >= m) return;
        for (int t = 0; t < SIDE / 8 && column + 8 * t < n; ++t)  // of f32, 4 lanes fill a sector of 32 bytes
            store(&c[size_t(y) * n + column + 8 * t + lane % 4 * 2],
                  Pack<C, 2>{C(sums[t][2 * lower]), C(sums[t][2 * lower + 1])});
    }
}
