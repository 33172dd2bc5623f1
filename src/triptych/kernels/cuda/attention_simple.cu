// softmax(Q Kᵀ · scale) V without tensor cores: the two lower rungs of the ladder. Arrays are heads × n × D, all batches'
// heads in one row; `group` heads of q share one of k and v; a row of Q sees the keys up to `ahead` behind its own.
#include "reductions.cuh"

// Mapping: a thread for each score; neighbours along x take neighbouring keys.
// Memory: all scores go to memory, come back for softmax, and once more for the product: n × n_kv of f32, thrice.
template <typename T, int D>
__global__ void attention_scores(const T *q, const T *k, float *scores, int n, int n_kv, int group, int ahead,
                                 float scale) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const int head = blockIdx.z;
    if (row >= n || key >= n_kv) return;
    q += (size_t(head) * n + row) * D, k += (size_t(head / group) * n_kv + key) * D;
    float sum = 0;
    for (int i = 0; i < D; ++i) sum += float(q[i]) * float(k[i]);
    scores[(size_t(head) * n + row) * n_kv + key] = key > row + ahead ? -INFINITY : sum * scale;
}

// Mapping: a thread for each element of the output; neighbours along x take neighbouring columns of V.
template <typename T, int D>
__global__ void attention_values(const float *weights, const T *v, T *out, int n, int n_kv, int group) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const int head = blockIdx.z;
    if (row >= n) return;
    weights += (size_t(head) * n + row) * n_kv, v += size_t(head / group) * n_kv * D;
    float sum = 0;
    for (int key = 0; key < n_kv; ++key) sum += weights[key] * float(v[size_t(key) * D + column]);
    out[(size_t(head) * n + row) * D + column] = T(sum);
}

// Tiling: a block takes 16 rows of Q and goes over the keys 32 at a time. Mapping: each of its 4 warps has 4 rows; a lane
// has a key while scores are made, and every 32nd column of the output while values are summed up.
// Memory: K and V pass through shared memory once for each block, in f32; scores stay in registers, a key's a lane, and
// go from lane to lane by shuffles. A row of K there has D + 1 places, that those of 32 keys lie in 32 banks.
// Overlap: none within a block: all wait for the copy. That of other blocks of the multiprocessor hides it.
template <typename T, int D>
__global__ void __launch_bounds__(128)
    attention_tiled(const T *q, const T *k, const T *v, T *out, int n, int n_kv, int group, int ahead, float scale) {
    constexpr int ROWS = 4, KEYS = 32, THREADS = 128, COLUMNS = D / 32;
    __shared__ float queries[4 * ROWS][D], keys[KEYS][D + 1], values[KEYS][D];
    const int first = blockIdx.x * 4 * ROWS, head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    q += size_t(head) * n * D, out += size_t(head) * n * D;
    k += size_t(head / group) * n_kv * D, v += size_t(head / group) * n_kv * D;
    for (int i = threadIdx.x; i < 4 * ROWS * D; i += THREADS)
        queries[i / D][i % D] = first + i / D < n ? float(q[size_t(first) * D + i]) * scale : 0;
    float total[ROWS][COLUMNS] = {}, largest[ROWS], sum[ROWS] = {};
    for (int r = 0; r < ROWS; ++r) largest[r] = LOWEST;
    const int seen = min(n_kv, first + 4 * ROWS + ahead);
    for (int start = 0; start < seen; start += KEYS) {
        __syncthreads();  // all are done with the tile before
        for (int i = threadIdx.x; i < KEYS * D; i += THREADS) {
            const bool there = start + i / D < n_kv;
            keys[i / D][i % D] = there ? float(k[size_t(start) * D + i]) : 0;
            values[i / D][i % D] = there ? float(v[size_t(start) * D + i]) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = warp * ROWS + r, key = start + lane;
            float score = 0;
#pragma unroll 4
            for (int i = 0; i < D; ++i) score += queries[row][i] * keys[lane][i];
            if (key >= n_kv || key > first + row + ahead) score = LOWEST;
            const float higher = fmaxf(largest[r], over_warp<Maximum>(score));
            const float kept = __expf(largest[r] - higher), power = __expf(score - higher);
            sum[r] = sum[r] * kept + power;
            for (int c = 0; c < COLUMNS; ++c) total[r][c] *= kept;
#pragma unroll 4
            for (int i = 0; i < KEYS; ++i) {
                const float weight = __shfl_sync(ALL_LANES, power, i);
                for (int c = 0; c < COLUMNS; ++c) total[r][c] += weight * values[i][lane + 32 * c];
            }
            largest[r] = higher;
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        const int row = first + warp * ROWS + r;
        const float factor = 1 / over_warp<Sum>(sum[r]);
        if (row < n)
            for (int c = 0; c < COLUMNS; ++c) out[size_t(row) * D + lane + 32 * c] = T(total[r][c] * factor);
    }
}
