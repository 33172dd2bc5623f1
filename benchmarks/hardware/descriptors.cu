// Which bytes of shared memory `wgmma` reads for a descriptor of A, by K: elements hold their numbers, in two launches
// of a digit each, and B picks eight columns at a time. A block for each case (start, swizzle mode, base offset).
#include <cuda_fp16.h>

constexpr int ELEMENTS = 16384;  // from a multiple of 1024 bytes on

extern "C" __global__ void read_by_descriptor(const unsigned* cases, float* found) {
  __shared__ __align__(1024) half a[ELEMENTS];
  __shared__ __align__(128) half b[128];
  unsigned start = cases[3 * blockIdx.x], mode = cases[3 * blockIdx.x + 1], base = cases[3 * blockIdx.x + 2];
  for (int digit = 0; digit < 2; digit++)
    for (int half_of_k = 0; half_of_k < 2; half_of_k++) {
      __syncthreads();
      for (int i = threadIdx.x; i < ELEMENTS; i += 128) a[i] = __int2half_rn(digit ? i >> 10 : i & 1023);
      int k = threadIdx.x / 64 * 8 + threadIdx.x % 8, n = threadIdx.x / 8 % 8;
      b[threadIdx.x] = __int2half_rn(k == n + 8 * half_of_k);
      asm volatile("fence.proxy.async;" ::: "memory");
      __syncthreads();
      unsigned long long of_a = (unsigned)__cvta_generic_to_shared(a) + start, of_b = (unsigned)__cvta_generic_to_shared(b);
      unsigned long long stride = 1024 >> (mode - 1);  // eight rows of 128, 64 or 32 bytes
      of_a = of_a >> 4 | 1ull << 16 | stride >> 4 << 32 | (unsigned long long)base << 49 | (unsigned long long)mode << 62;
      of_b = of_b >> 4 | 8ull << 16 | 8ull << 32;
      float d[4] = {0, 0, 0, 0};
      asm volatile("wgmma.fence.sync.aligned;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
      asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(of_a), "l"(of_b));
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
      float* out = found + (blockIdx.x * 4 + digit * 2 + half_of_k) * 512;
      int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
      out[row * 8 + column] = d[0], out[row * 8 + column + 1] = d[1];
      out[(row + 8) * 8 + column] = d[2], out[(row + 8) * 8 + column + 1] = d[3];
    }
}
