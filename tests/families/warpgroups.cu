// Multiplications of matrices as kernels for Hopper do them: a warp copies tiles by TMA, a warpgroup multiplies them.
#include <cuda_fp16.h>
#include <stdint.h>

struct alignas(64) Map {
    char bytes[128];
};

static __device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ void wait(uint32_t barrier, uint32_t parity) {
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

static __device__ void arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ void load(uint32_t target, const Map *map, int x, int y, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            target),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

// A matrix in shared memory, swizzled over 128 bytes: pieces of 8 rows are 1024 bytes apart.
static __device__ uint64_t descriptor(uint32_t address) {
    return (uint64_t)((address & 0x3FFFF) >> 4) | (uint64_t)(8192 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

static __device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> static __device__ void wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define EIGHT(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
                    "+f"(d[i + 6]), "+f"(d[i + 7])
#define REGISTERS \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23," \
    " %24, %25, %26, %27, %28, %29, %30, %31}"

template <int TURN_B> static __device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " REGISTERS ", %32, %33, 1, 1, 1, 0, %34;"
                 : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24)
                 : "l"(a), "l"(b), "n"(TURN_B));
}

constexpr int TILE = 64, STAGES = 2, BYTES = TILE * TILE * 2;

struct Ring {
    alignas(1024) char a[STAGES][BYTES], b[STAGES][BYTES];
    uint64_t full[STAGES], empty[STAGES];
};

// C = A × B, of tiles of 64 × 64; B lies by rows of K, or by columns where it is not TURNED. 160 threads: the last warp
// copies.
template <int TURNED>
__global__ void product(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c, int n, int k) {
    extern __shared__ Ring rings[];
    Ring &ring = *rings;
    int warp = threadIdx.x / 32, row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&ring.full[i])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(shared_address(&ring.empty[i])));
        }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (warp == 4) {
        if (threadIdx.x % 32 == 0)
            for (int i = 0; i < k / TILE; ++i) {
                int slot = i % STAGES;
                uint32_t full = shared_address(&ring.full[slot]);
                wait(shared_address(&ring.empty[slot]), i / STAGES % 2 ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(2 * BYTES));
                load(shared_address(ring.a[slot]), &a, i * TILE, row, full);
                load(shared_address(ring.b[slot]), &b, TURNED ? column : i * TILE, TURNED ? i * TILE : column, full);
            }
        return;
    }
    float d[32] = {};
    for (int i = 0; i < k / TILE; ++i) {
        int slot = i % STAGES;
        wait(shared_address(&ring.full[slot]), i / STAGES % 2);
        uint64_t left = descriptor(shared_address(ring.a[slot])), right = descriptor(shared_address(ring.b[slot]));
        fence();
        for (int step = 0; step < TILE / 16; ++step)
            multiply<TURNED>(d, left + step * (32 >> 4), right + step * ((TURNED ? 16 * 128 : 32) >> 4));
        commit();
        wait_group<0>();
        arrive(shared_address(&ring.empty[slot]));
    }
    int lane = threadIdx.x % 32;
    for (int i = 0; i < 32; ++i) {
        int line = row + 16 * warp + lane / 4 + 8 * (i / 2 % 2);
        c[line * n + column + 8 * (i / 4) + lane % 4 * 2 + i % 2] = d[i];
    }
}
