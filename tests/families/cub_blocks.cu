#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>

struct Affine { int scale, offset; };  // x -> scale * x + offset; its composition does not commute
struct Then {
    __device__ Affine operator()(Affine a, Affine b) const { return {a.scale * b.scale, b.scale * a.offset + b.offset}; }
};
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
struct Largest { __device__ float operator()(float a, float b) const { return a > b ? a : b; } };

template <typename T, int THREADS, cub::BlockReduceAlgorithm HOW, typename Operator>
__global__ void reduce(const T *input, T *out, int valid) {
    using Block = cub::BlockReduce<T, THREADS, HOW>;
    __shared__ typename Block::TempStorage storage;
    T result = Block(storage).Reduce(input[blockIdx.x * THREADS + threadIdx.x], Operator(), valid);
    if (threadIdx.x == 0) out[blockIdx.x] = result;
}

template <cub::BlockScanAlgorithm HOW> __global__ void scan(const Affine *input, Affine *out, Affine *totals) {
    using Block = cub::BlockScan<Affine, 64, HOW>;
    __shared__ typename Block::TempStorage storage;
    Affine own[2], total;
    for (int k = 0; k < 2; ++k) own[k] = input[(blockIdx.x * 64 + threadIdx.x) * 2 + k];
    Block(storage).ExclusiveScan(own, own, Affine{1, 0}, Then(), total);
    for (int k = 0; k < 2; ++k) out[(blockIdx.x * 64 + threadIdx.x) * 2 + k] = own[k];
    if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

template <typename K, int BITS, bool DOWN> __global__ void sort(K *keys, int *values, int begin, int end) {
    using Block = cub::BlockRadixSort<K, 64, 2, int, BITS>;
    __shared__ typename Block::TempStorage storage;
    K k[2];
    int v[2], base = (blockIdx.x * 64 + threadIdx.x) * 2;
    for (int i = 0; i < 2; ++i) k[i] = keys[base + i], v[i] = values[base + i];
    if constexpr (DOWN) Block(storage).SortDescending(k, v, begin, end);
    else Block(storage).Sort(k, v, begin, end);
    for (int i = 0; i < 2; ++i) keys[base + i] = k[i], values[base + i] = v[i];
}

template <typename T, int WIDTH> __global__ void warps(const T *input, const int *heads, T *sums, T *largest, T *segments, int valid) {
    using Warp = cub::WarpReduce<T, WIDTH>;
    __shared__ typename Warp::TempStorage storage[96 / WIDTH];
    auto &own = storage[threadIdx.x / WIDTH];
    T value = input[threadIdx.x], sum = Warp(own).Sum(value);
    __syncwarp();
    T most = Warp(own).Reduce(value, Largest(), valid);
    __syncwarp();
    T segment = Warp(own).HeadSegmentedSum(value, heads[threadIdx.x]);
    if (threadIdx.x % WIDTH == 0) sums[threadIdx.x / WIDTH] = sum, largest[threadIdx.x / WIDTH] = most;
    segments[threadIdx.x] = segment;
}

template <typename T, cub::BlockLoadAlgorithm LOAD, cub::BlockStoreAlgorithm STORE>
__global__ void copy(const T *input, T *out, T *sums, int count, T other) {
    using Load = cub::BlockLoad<T, 64, 5, LOAD>;
    using Store = cub::BlockStore<T, 64, 5, STORE>;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } storage;
    int base = blockIdx.x * 320;
    T own[5], sum = 0;
    Load(storage.load).Load(input + base, own, count - base, other);
    for (int k = 0; k < 5; ++k) sum += own[k];
    sums[blockIdx.x * 64 + threadIdx.x] = sum;
    __syncthreads();
    Store(storage.store).Store(out + base, own, count - base);
}
