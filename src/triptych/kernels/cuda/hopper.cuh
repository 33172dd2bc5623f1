// The instructions of sm_90a that kernels of roles are made of: mbarriers, TMA and wgmma, one function each.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ inline uint32_t shared_address(const void *place) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

// A barrier in shared memory: a phase ends when `count` arrivals and all bytes that were announced have come.
struct Barrier {
    uint64_t state;

    // By the one thread that is `elected`; a predicate, where one lane does so little, spares the warp a branch.
    __device__ void init(int count, bool elected) {
        asm volatile("{ .reg .pred elected; setp.ne.b32 elected, %2, 0;\n"
                     "@elected mbarrier.init.shared::cta.b64 [%0], %1; }" ::"r"(shared_address(&state)), "r"(count),
                     "r"(int(elected)) : "memory");
    }
    // One arrival for each thread that is `elected`.
    __device__ void arrive(bool elected) {
        asm volatile("{ .reg .pred elected; setp.ne.b32 elected, %1, 0;\n"
                     "@elected mbarrier.arrive.shared::cta.b64 _, [%0]; }" ::"r"(shared_address(&state)),
                     "r"(int(elected)) : "memory");
    }
    __device__ void arrive_and_expect(int bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)), "r"(bytes)
                     : "memory");
    }
    // Waits for the end of the phase of a parity: 0 is the first one's. Before it, that of parity 1 counts as over.
    __device__ void wait(uint32_t parity) {
        asm volatile("{ .reg .pred over;\n"
                     "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                     "@!over bra again; }" ::"r"(shared_address(&state)), "r"(parity) : "memory");
    }
};

// Makes barriers that this thread began, if any, known to the hardware that copies.
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// A box of a tensor to shared memory by one thread's order; its bytes arrive at the barrier. x is the innermost.
__device__ inline void copy_box(void *target, const CUtensorMap &map, int x, int y, Barrier &barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(target)), "l"(&map), "r"(x), "r"(y),
                 "r"(shared_address(&barrier.state)) : "memory");
}
__device__ inline void copy_box(void *target, const CUtensorMap &map, int x, int y, int z, Barrier &barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(target)), "l"(&map), "r"(x), "r"(y), "r"(z),
                 "r"(shared_address(&barrier.state)) : "memory");
}

// How wgmma finds a matrix in shared memory that TMA wrote with a swizzle of 128 bytes, in rows of 128 bytes: groups of
// 8 rows are 1024 bytes apart; `leading` is from 64 columns to the next 64 where the rows are k (else unused).
__device__ inline uint64_t matrix(const void *start, int leading = 16) {
    return (shared_address(start) & 0x3FFFF) >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(1024 >> 4) << 32 |
           uint64_t(1) << 62;
}
constexpr int ALONG_ROWS = 32 >> 4;         // 16 elements further, in a descriptor's units
constexpr int ALONG_COLUMNS = 16 * 128 >> 4;  // 16 rows further

// A warpgroup's products run by themselves between commit and wait; registers are theirs from the fence to the wait.
__device__ inline void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ inline void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Registers of each thread of this warpgroup from here on; a block's are dealt out evenly when it begins.
template <int COUNT> __device__ inline void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// Keeps the compiler from using registers above this place; it cannot know that products change them until the wait.
template <int TILES> __device__ inline void hold(float (&d)[TILES][4]) {
    for (int t = 0; t < TILES; ++t)
        asm volatile("" : "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])::"memory");
}

template <typename T> constexpr bool is_half = false;
template <> constexpr bool is_half<half> = true;

#define TILE(t) "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])
#define TILES_8 TILE(0), TILE(1), TILE(2), TILE(3), TILE(4), TILE(5), TILE(6), TILE(7)
#define TILES_16 TILES_8, TILE(8), TILE(9), TILE(10), TILE(11), TILE(12), TILE(13), TILE(14), TILE(15)
#define NAMES_8                                                                                                \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22," \
    " %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_16                                                                                               \
    NAMES_8 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50," \
            " %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// D (64 × 128) = A × B, plus D where `keep`, both in shared memory. A's rows lie along k; B's too, or along n: TURNED.
#define PRODUCT(type)                                                                                          \
    asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %66, 0;\n"                                              \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" NAMES_16 "}, %64, %65,"     \
                 " keep, 1, 1, 0, %67; }"                                                                      \
                 : TILES_16 : "l"(a), "l"(b), "r"(int(keep)), "n"(TURNED))
template <typename T, int TURNED>
__device__ inline void multiply(float (&d)[16][4], uint64_t a, uint64_t b, bool keep) {
    if constexpr (is_half<T>) PRODUCT("f16");
    else PRODUCT("bf16");
}

// D (64 × 64 or 64 × 128) += A × B with A in registers, 16 rows a warp as mma.sync has them, and B's rows along n.
#define PRODUCT_64(type)                                                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" NAMES_8 "},"                 \
                 " {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"                                                     \
                 : TILES_8 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define PRODUCT_128(type)                                                                                      \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" NAMES_16 "},"               \
                 " {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"                                                     \
                 : TILES_16 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
template <typename T> __device__ inline void multiply(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b) {
    if constexpr (is_half<T>) PRODUCT_64("f16");
    else PRODUCT_64("bf16");
}
template <typename T> __device__ inline void multiply(float (&d)[16][4], const uint32_t (&a)[4], uint64_t b) {
    if constexpr (is_half<T>) PRODUCT_128("f16");
    else PRODUCT_128("bf16");
}
