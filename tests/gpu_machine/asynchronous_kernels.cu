// Kernels of `test_asynccheck.py`: right where `wrong` is 0. Lines that end with a mark are those that findings name.
using u32 = unsigned;
using u64 = unsigned long long;

__device__ __forceinline__ u32 place(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy16(const void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void init(u64* barrier, u32 count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(place(barrier)), "r"(count) : "memory");
}
__device__ __forceinline__ void expect(u64* barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(place(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(u64* barrier, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(place(barrier)), "r"(parity) : "memory");
}
__device__ __forceinline__ void load_in_bulk(const void* to, const void* from, u32 bytes, u64* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     place(to)), "l"(from), "r"(bytes), "r"(place(barrier)) : "memory");
}
__device__ __forceinline__ void store_in_bulk(const void* to, const void* from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(place(from)), "r"(bytes)
                 : "memory");
}

extern "C" __global__ void early(const float4* in, float4* out, int wrong) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    copy16(&tile[t], &in[t]);  // copy
    if (wrong != 2) commit();
    if (wrong != 1) wait<0>();  // which takes in groups alone
    __syncthreads();
    out[t] = tile[63 - t];  // too early
}

extern "C" __global__ void ring(const float4* in, float4* out, int wrong) {
    __shared__ float4 stages[3][64];
    int t = threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = -2; i < 9; i++) {
        __syncthreads();
        if (i + 2 < 9) copy16(&stages[(i + 2) % 3][t], &in[64 * (i + 2) + t]);  // copy
        commit();
        if (i < 0) continue;
        if (wrong == 2) wait<3>(); else wait<2>();
        __syncthreads();
        float4 v = stages[i % 3][63 - t];  // too early
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[t] = sum;
}

extern "C" __global__ void half(const float4* in, float4* out, int wrong) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    copy16(&tile[t], &in[t]);  // copy
    commit();
    if (!wrong || t % 32 < 16) wait<0>();
    __syncthreads();
    out[t] = tile[63 - t];  // too early
}

extern "C" __global__ void refill(const float4* in, float4* out, int wrong) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    copy16(&tile[t], &in[t]);  // copy
    commit();
    if (!wrong) wait<0>();
    copy16(&tile[t], &in[64 + t]);  // too early
    commit();
    wait<0>();
    __syncthreads();
    out[t] = tile[63 - t];
}

extern "C" __global__ void store_over(const float4* in, float4* out, int wrong) {
    __shared__ float4 tile[64];
    int t = threadIdx.x;
    copy16(&tile[t], &in[t]);  // copy
    commit();
    if (!wrong) wait<0>();
    tile[t] = in[64 + t];  // too early
    wait<0>();
    __syncthreads();
    out[t] = tile[63 - t];
}

extern "C" __global__ void told(const float4* in, float4* out, int wrong) {
    __shared__ float4 tile[64];
    __shared__ u64 barrier;
    int t = threadIdx.x;
    if (t == 0) init(&barrier, 64);
    __syncthreads();
    copy16(&tile[t], &in[t]);  // copy
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(place(&barrier)) : "memory");
    if (!wrong) await(&barrier, 0);
    else __syncthreads();
    out[t] = tile[63 - t];  // too early
}

extern "C" __global__ void bulk(const float4* in, float4* out, int wrong) {
    __shared__ __align__(16) float4 stages[2][64];
    __shared__ u64 full[2];
    int t = threadIdx.x;
    if (t < 2) init(&full[t], 1);
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < 6; i++) {
        int s = i % 2;
        if (t == 0) expect(&full[s], 1024);
        if (t == 0) load_in_bulk(stages[s], &in[64 * i], 1024, &full[s]);  // copy
        __syncthreads();
        if (wrong == 2 && i > 0) await(&full[s ^ 1], (i - 1) / 2 & 1);
        if (!wrong) await(&full[s], i / 2 & 1);
        float4 v = stages[s][63 - t];  // too early
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        __syncthreads();
    }
    out[t] = sum;
}

extern "C" __global__ void bulk_refill(const float4* in, float4* out, int wrong) {
    __shared__ __align__(16) float4 tile[64];
    __shared__ u64 full[2];
    int t = threadIdx.x;
    if (t < 2) init(&full[t], 1);
    __syncthreads();
    if (t == 0) {
        expect(&full[0], 1024);
        load_in_bulk(tile, in, 1024, &full[0]);  // copy
        if (!wrong) await(&full[0], 0);
        expect(&full[1], 512);
        load_in_bulk(tile + 32, in, 512, &full[1]);  // too early
    }
    __syncthreads();
    await(&full[1], 0);
    if (!wrong || t >= 32) out[t] = tile[t];
}

extern "C" __global__ void bulk_store(const float4* in, float4* out, int wrong) {
    __shared__ __align__(16) float4 tile[64];
    int t = threadIdx.x;
    tile[t] = in[t];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        store_in_bulk(out, tile, 1024);  // copy
        if (wrong != 2) asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (wrong != 1) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    tile[t] = in[64 + t];  // too early
    __syncthreads();
    out[64 + t] = tile[63 - t];
}

extern "C" __global__ void forwarded(const float4* in, float4* out, int wrong) {
    __shared__ __align__(16) float4 tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
        expect(&full, 1024);
        load_in_bulk(tile, in, 1024, &full);  // copy
        if (!wrong) await(&full, 0);
        store_in_bulk(out, tile, 1024);  // too early
    }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) remote(const float* in, float* out, int wrong) {
    __shared__ float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(&full, 1), expect(&full, 256);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    u32 rank, to, barrier;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(place(&tile[t])), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(place(&full)), "r"(rank ^ 1));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(__float_as_int(in[t])), "r"(barrier) : "memory");  // copy
    if (!wrong) await(&full, 0);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    out[64 * blockIdx.x + t] = tile[63 - t];  // too early
}

// Both matrices by K, without swizzling: 8 rows of 16 bytes are a piece, which lie 128 bytes apart.
__device__ __forceinline__ u64 descriptor(const void* p) { return (u64)(place(p) >> 4) | 8ull << 16 | 16ull << 32; }

extern "C" __global__ void products(const float* in, float* out, int wrong) {
    __shared__ __align__(128) unsigned short a[64 * 16], b[2][8 * 16];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) a[i] = 0x3c00;
    b[0][t] = b[1][t] = 0x3c00;
    float d[4] = {0, 0, 0, 0};
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int stage = 0; stage < 2; stage++) {
        asm volatile("{ .reg .pred p; setp.ne.u32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor(a)), "l"(descriptor(b[stage])));  // copy
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    if (wrong == 1) asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    else asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
    b[0][t] = 0;
    b[1][t] = 0;  // too early
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
    out[t] = d[0] + d[1] + d[2] + d[3] + in[t];
}

struct __align__(64) TensorMap { char bytes[128]; };

extern "C" __global__ void boxes(const __grid_constant__ TensorMap map, float* out, int wrong) {
    __shared__ __align__(128) float tile[64];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) init(&full, 1);
    __syncthreads();
    if (t == 0) expect(&full, 256);
    if (t == 0) asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(place(tile)), "l"(&map), "r"(64), "r"(place(&full)) : "memory");  // copy
    if (wrong != 1) await(&full, 0);
    __syncthreads();
    out[t] = tile[63 - t];  // too early
    __syncthreads();
    if (wrong == 1) return;
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(0), "r"(place(tile)) : "memory");  // box
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (wrong != 2) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    tile[t] = 0;  // behind the box
}
