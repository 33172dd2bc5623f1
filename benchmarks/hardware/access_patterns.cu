// One warp, one access: the kernels whose counters are compared between a GPU and the machine.
// Under NVRTC only the kernels are there; nvcc also builds the host program that `record_access_patterns.py` profiles.

template <class T> __device__ T filled(unsigned lane);
template <> __device__ unsigned char filled<unsigned char>(unsigned lane) { return lane; }
template <> __device__ unsigned short filled<unsigned short>(unsigned lane) { return lane; }
template <> __device__ unsigned filled<unsigned>(unsigned lane) { return lane; }
template <> __device__ unsigned long long filled<unsigned long long>(unsigned lane) { return lane; }
template <> __device__ uint4 filled<uint4>(unsigned lane) { return make_uint4(lane, lane, lane, lane); }

template <class T> __device__ unsigned folded(T value) { return (unsigned)value; }
template <> __device__ unsigned folded<uint4>(uint4 value) { return value.x + value.y + value.z + value.w; }

// Each lane of the mask reaches for the element at its byte offset.
template <class T>
__global__ void shared_load(const unsigned* offsets, unsigned mask, unsigned* out) {
  extern __shared__ __align__(16) char memory[];
  unsigned lane = threadIdx.x, offset = offsets[lane];
  if (mask >> lane & 1) out[lane] = folded(*(volatile T*)(memory + offset));
}
template <>
__global__ void shared_load<uint4>(const unsigned* offsets, unsigned mask, unsigned* out) {
  extern __shared__ __align__(16) char memory[];
  unsigned lane = threadIdx.x, offset = offsets[lane];
  if (mask >> lane & 1) out[lane] = folded(*(uint4*)(memory + offset));
}
template <class T>
__global__ void shared_store(const unsigned* offsets, unsigned mask, unsigned* out) {
  extern __shared__ __align__(16) char memory[];
  unsigned lane = threadIdx.x, offset = offsets[lane];
  if (mask >> lane & 1) *(T*)(memory + offset) = filled<T>(lane);
  __syncthreads();
  out[lane] = *(unsigned*)(memory + 4 * lane);
}
template <class T>
__global__ void global_load(const unsigned* offsets, unsigned mask, const char* data, unsigned* out) {
  unsigned lane = threadIdx.x, offset = offsets[lane];
  if (mask >> lane & 1) out[lane] = folded(*(const T*)(data + offset));
}
template <class T>
__global__ void global_store(const unsigned* offsets, unsigned mask, char* data) {
  unsigned lane = threadIdx.x, offset = offsets[lane];
  if (mask >> lane & 1) *(T*)(data + offset) = filled<T>(lane);
}

#ifndef __CUDACC_RTC__
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Pattern { int kind; int size; unsigned mask; unsigned offsets[32]; };

template <class T>
static void launch(const Pattern& p, unsigned* offsets, char* data, unsigned* out) {
  const int shared = 32768;
  if (p.kind == 0) shared_load<T><<<1, 32, shared>>>(offsets, p.mask, out);
  if (p.kind == 1) shared_store<T><<<1, 32, shared>>>(offsets, p.mask, out);
  if (p.kind == 2) global_load<T><<<1, 32>>>(offsets, p.mask, data, out);
  if (p.kind == 3) global_store<T><<<1, 32>>>(offsets, p.mask, data);
}

int main(int argc, char** argv) {
  FILE* file = fopen(argv[1], "rb");
  std::vector<Pattern> patterns;
  for (Pattern p; fread(&p, sizeof p, 1, file) == 1;) patterns.push_back(p);
  unsigned *offsets, *out; char* data;
  cudaMalloc(&offsets, 128); cudaMalloc(&out, 128); cudaMalloc(&data, 1 << 20);
  cudaMemset(data, 1, 1 << 20);
  for (const Pattern& p : patterns) {
    cudaMemcpy(offsets, p.offsets, 128, cudaMemcpyHostToDevice);
    switch (p.size) {
      case 1: launch<unsigned char>(p, offsets, data, out); break;
      case 2: launch<unsigned short>(p, offsets, data, out); break;
      case 4: launch<unsigned>(p, offsets, data, out); break;
      case 8: launch<unsigned long long>(p, offsets, data, out); break;
      case 16: launch<uint4>(p, offsets, data, out); break;
    }
    if (cudaDeviceSynchronize() != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(cudaGetLastError())); return 1; }
  }
  return 0;
}
#endif
