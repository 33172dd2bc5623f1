// The instructions of sm_80 that feed tensor cores: cp.async, ldmatrix and mma.sync, one function each.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ inline uint32_t shared_address(const void *place) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

// 16 bytes from global to shared memory, past the registers and L1; zeros where there is nothing to read.
__device__ inline void copy_async(uint32_t target, const void *source, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(there ? 16 : 0)
                 : "memory");
}

__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's groups of copies, the youngest, are under way.
template <int PENDING> __device__ inline void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Four matrices of 8 × 8 from shared memory: lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(uint32_t (&d)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(address) : "memory");
}

// The same, each matrix transposed.
__device__ inline void load_transposed(uint32_t (&d)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(address) : "memory");
}

// D += A × B of 16 × 8 × 16, in f32. Lane l has rows l / 4 and l / 4 + 8 of D, columns 2 (l % 4) and the next one.
#define MMA_16816(type)                                                                        \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

template <typename T>
__device__ inline void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ inline void multiply<half>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    MMA_16816("f16");
}
template <>
__device__ inline void multiply<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    MMA_16816("bf16");
}
#undef MMA_16816
