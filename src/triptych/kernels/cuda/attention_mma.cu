// softmax(Q Kᵀ · scale) V for sm_80, never more of the scores than a tile: cp.async, ldmatrix, mma.sync, f32 sums.
// Arrays are heads × n × D, all batches' heads in one row; `group` heads of q share one of k and v; a row of Q
// sees the keys up to `ahead` behind its own.
#include "ampere.cuh"
#include "softmax.cuh"

constexpr int ROWS = 64, KEYS = 64, THREADS = 128;
constexpr int PIECE = 8;  // elements of 16 bytes

// Rows of 128 or 256 bytes; pieces of rows below each other lie in different banks.
template <typename T, int D> struct Tile {
    T elements[ROWS][D];

    __device__ uint32_t at(int row, int piece) { return shared_address(&elements[row][(piece ^ (row % 8)) * PIECE]); }

    // Rows from `first` on, `count` of which there are; zeros behind them.
    __device__ void fetch(const T *array, int first, int count) {
        for (int i = 0; i < ROWS * D / PIECE / THREADS; ++i) {
            const int number = i * THREADS + threadIdx.x, row = number / (D / PIECE), piece = number % (D / PIECE);
            copy_async(at(row, piece), array + size_t(min(first + row, count - 1)) * D + piece * PIECE,
                       first + row < count);
        }
    }
};

// Tiling: a block takes 64 rows of Q and goes over the keys 64 at a time. Mapping: each of its 4 warps has 16 rows to
// itself, so that none needs another's maximum. Memory: Q, the scores and O stay in registers; K and V pass through
// shared memory once for each block.
template <typename T, int D>
__global__ void __launch_bounds__(THREADS)
    attention_mma(const T *q, const T *k, const T *v, T *out, int n_q, int n_kv, int group, int ahead, float scale) {
    static_assert(ROWS == KEYS, "tiles of Q, K and V are alike");
    extern __shared__ __align__(128) char shared[];
    auto *tiles = reinterpret_cast<Tile<T, D> *>(shared);
    Tile<T, D> &tile_q = tiles[0], &tile_k = tiles[1], &tile_v = tiles[2];

    const int first = (gridDim.x - 1 - blockIdx.x) * ROWS;  // the blocks with the most keys begin first
    const int head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = first + 16 * warp;
    const int keys = min(n_kv, first + ROWS + ahead);
    q += size_t(head) * n_q * D, out += size_t(head) * n_q * D;
    k += size_t(head / group) * n_kv * D, v += size_t(head / group) * n_kv * D;

    tile_q.fetch(q, first, n_q);
    tile_k.fetch(k, 0, n_kv);
    commit_copies();
    uint32_t a[D / 16][4];
    float products[D / 8][4] = {};
    OnlineSoftmax softmax(scale);
#pragma unroll 1
    for (int key = 0; key < keys; key += KEYS) {
        wait_copies<0>();
        __syncthreads();  // K is there, and all are done with V
        if (key == 0)
            for (int i = 0; i < D / 16; ++i) load_matrices(a[i], tile_q.at(16 * warp + lane % 16, 2 * i + lane / 16));
        tile_v.fetch(v, key, n_kv);  // Overlap: V comes while the tensor cores multiply Q and K
        commit_copies();

        float scores[KEYS / 8][4] = {};
        for (int i = 0; i < D / 16; ++i)
            for (int j = 0; j < KEYS / 16; ++j) {
                uint32_t b[4];  // 16 keys × 16 of D: keys are the columns of Kᵀ, which mma wants one behind the other
                load_matrices(b, tile_k.at(16 * j + lane % 8 + lane / 16 * 8, 2 * i + lane / 8 % 2));
                multiply<T>(scores[2 * j], a[i], b[0], b[1]);
                multiply<T>(scores[2 * j + 1], a[i], b[2], b[3]);
            }
        wait_copies<0>();
        __syncthreads();  // V is there, and all are done with K
        if (key + KEYS < keys) tile_k.fetch(k, key + KEYS, n_kv);  // Overlap: the next K, during all the rest
        commit_copies();

        if (key + KEYS > n_kv || key + KEYS - 1 > row + ahead) mask(scores, row, key, ahead, n_kv);
        float correction[2];
        softmax.take(scores, correction);
        shrink(products, correction);
        uint32_t p[KEYS / 16][4];
        as_operand<T>(p, scores);
        for (int i = 0; i < KEYS / 16; ++i)
            for (int j = 0; j < D / 16; ++j) {
                uint32_t b[4];  // 16 keys × 16 of D, transposed on the way
                load_transposed(b, tile_v.at(16 * i + lane % 16, 2 * j + lane / 16));
                multiply<T>(products[2 * j], p[i], b[0], b[1]);
                multiply<T>(products[2 * j + 1], p[i], b[2], b[3]);
            }
    }

    const float factors[2] = {softmax.reciprocal(0), softmax.reciprocal(1)};
    for (int lower = 0; lower < 2; ++lower) {
        const int y = row + lane / 4 + 8 * lower;
        if (y >= n_q) return;
        for (int t = 0; t < D / 8; ++t)
            *reinterpret_cast<uint32_t *>(&out[size_t(y) * D + 8 * t + lane % 4 * 2]) =
                pack<T>(products[t][2 * lower] * factors[lower], products[t][2 * lower + 1] * factors[lower]);
    }
}
