// softmax(Q Kᵀ · scale) V for sm_90a, never more of the scores than a tile: a warp has tiles copied by TMA, two
// warpgroups multiply by wgmma, f32 sums. Arrays are heads × n × D, all batches' heads in one row; `group` heads of
// q share one of k and v; a row of Q sees the keys up to `ahead` behind its own.
#include "hopper.cuh"
#include "softmax.cuh"

constexpr int ROWS = 128, KEYS = 128, STAGES = 4, CONSUMERS = 256, THREADS = CONSUMERS + 128;
constexpr int CHUNK = 64;  // elements of 128 bytes, as far as a swizzle goes

// Memory: tiles of 128 rows in columns of 128 bytes, which TMA swizzles as wgmma reads them.
template <typename T, int D> struct Tile {
    T columns[D / CHUNK][ROWS][CHUNK];

    __device__ void fetch(const CUtensorMap &map, int row, int head, Barrier &barrier) {
        barrier.arrive_and_expect(sizeof *this);
        for (int i = 0; i < D / CHUNK; ++i) copy_box(columns[i], map, i * CHUNK, row, head, barrier);
    }
};

// Tiles of K and V in turn: K0, K1, V0, K2, V1 … as the products want them.
template <typename T, int D> struct Ring {
    alignas(1024) Tile<T, D> q, tiles[STAGES];
    Barrier has_q, full[STAGES], empty[STAGES];
};

// Where a tile lies in the ring, and the parity of the phase that its arrival ends.
struct Place {
    int slot = 0;
    uint32_t parity = 0;

    __device__ void advance() {
        slot = (slot + 1) % STAGES;
        parity ^= slot == 0;
    }
};

// Mapping: one thread of the last warpgroup orders all copies; its registers are lent to the others.
template <typename T, int D>
__device__ void produce(Ring<T, D> &ring, const CUtensorMap &q, const CUtensorMap &k, const CUtensorMap &v, int first,
                        int head, int group, int steps) {
    Place place;
    auto fetch = [&](const CUtensorMap &map, int step) {
        ring.empty[place.slot].wait(place.parity ^ 1);
        ring.tiles[place.slot].fetch(map, step * KEYS, head / group, ring.full[place.slot]);
        place.advance();
    };
    ring.q.fetch(q, first, head, ring.has_q);
    fetch(k, 0);
    for (int step = 1; step < steps; ++step) {
        fetch(k, step);
        fetch(v, step - 1);
    }
    fetch(v, steps - 1);
}

// Tiling: a block takes 128 rows of Q and goes over the keys 128 at a time; each warpgroup has 64 rows, each warp 16 to
// itself, so that no warp needs another's maximum.
template <typename T, int D>
__global__ void __launch_bounds__(THREADS)
    attention_wgmma(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                    const __grid_constant__ CUtensorMap v, T *out, int n_q, int n_kv, int group, int ahead,
                    float scale) {
    extern __shared__ __align__(1024) char shared[];
    auto &ring = *reinterpret_cast<Ring<T, D> *>(shared);
    const int first = (gridDim.x - 1 - blockIdx.x) * ROWS;  // the blocks with the most keys begin first
    const int head = blockIdx.y, lane = threadIdx.x % 32;
    const int keys = min(n_kv, first + ROWS + ahead), steps = (keys + KEYS - 1) / KEYS;
    ring.has_q.init(1, threadIdx.x == 0);
    for (int i = 0; i < STAGES; ++i) {
        ring.full[i].init(1, threadIdx.x == 0);
        ring.empty[i].init(CONSUMERS / 32, threadIdx.x == 0);
    }
    publish_barriers();
    __syncthreads();
    if (threadIdx.x >= CONSUMERS) {
        give_registers<24>();
        if (threadIdx.x == CONSUMERS) produce(ring, q, k, v, first, head, group, steps);
        return;
    }
    take_registers<240>();

    const int row = first + threadIdx.x / 32 * 16;  // the warp's first
    float scores[KEYS / 8][4], products[D / 8][4] = {};
    uint32_t p[KEYS / 16][4];
    OnlineSoftmax softmax(scale);
    Place place;
    auto score = [&] {  // scores = Q Kᵀ, begun
        ring.full[place.slot].wait(place.parity);
        fence_products();
        for (int i = 0; i < D / 16; ++i) {
            const int column = i / (CHUNK / 16), inner = i % (CHUNK / 16) * ALONG_ROWS;
            multiply<T, 0>(scores, matrix(ring.q.columns[column][threadIdx.x / 128 * 64]) + inner,
                           matrix(ring.tiles[place.slot].columns[column]) + inner, i > 0);
        }
        commit_products();
    };
    auto weigh = [&] {  // products += P V, begun
        ring.full[place.slot].wait(place.parity);
        fence_products();
        const uint64_t right = matrix(ring.tiles[place.slot].columns, sizeof ring.tiles[0].columns[0]);
        for (int i = 0; i < KEYS / 16; ++i) multiply<T>(products, p[i], right + i * ALONG_COLUMNS);
        commit_products();
    };

    ring.has_q.wait(0);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        // Overlap: while the tensor cores multiply the last P by V, the other units exponentiate the next scores.
        const int slot_k = place.slot;
        score();
        place.advance();
        if (step > 0) weigh();
        else commit_products();  // an empty group keeps the count
        wait_products<1>();
        ring.empty[slot_k].arrive(lane == 0);
        hold(scores);
        const int key = step * KEYS;
        if (key + KEYS > n_kv || key + KEYS - 1 > row + ahead) mask(scores, row, key, ahead, n_kv);
        float correction[2];
        softmax.take(scores, correction);
        wait_products<0>();
        hold(products);
        if (step > 0) {
            ring.empty[place.slot].arrive(lane == 0);
            place.advance();
        }
        shrink(products, correction);
        as_operand<T>(p, scores);
    }
    weigh();
    wait_products<0>();
    hold(products);

    const float factors[2] = {softmax.reciprocal(0), softmax.reciprocal(1)};
    for (int lower = 0; lower < 2; ++lower) {
        const int y = row + lane / 4 + 8 * lower;
        if (y >= n_q) return;
        for (int t = 0; t < D / 8; ++t)
            *reinterpret_cast<uint32_t *>(&out[(size_t(head) * n_q + y) * D + 8 * t + lane % 4 * 2]) =
                pack<T>(products[t][2 * lower] * factors[lower], products[t][2 * lower + 1] * factors[lower]);
    }
}
