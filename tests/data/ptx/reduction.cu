__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void block_sum(const float* input, float* output, int n) {
    __shared__ float partial[32];
    float value = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += input[i];
    value = warp_sum(value);
    int warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x / warpSize ? partial[lane] : 0.0f;
        value = warp_sum(value);
        if (lane == 0) atomicAdd(output, value);
    }
}

extern "C" __global__ void histogram(const unsigned* keys, unsigned* bins, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        unsigned peers = __ballot_sync(__activemask(), keys[i] & 1);
        atomicAdd(&bins[keys[i] & 255], __popc(peers) ? 1u : 0u);
    }
}
