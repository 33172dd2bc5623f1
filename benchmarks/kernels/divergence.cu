// Four ways of equal work. `shift` says what chooses: 0 the lane (each warp parts in four), 5 the warp (no warp parts).
extern "C" __global__ void four_ways(float* out, int steps, int shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i;
    switch ((threadIdx.x >> shift) & 3) {
        case 0:
            for (int k = 0; k < steps; ++k) x = fmaf(x, 0.5f, 1.0f);
            break;
        case 1:
            for (int k = 0; k < steps; ++k) x = fmaf(x, 0.25f, 2.0f);
            break;
        case 2:
            for (int k = 0; k < steps; ++k) x = fmaf(x, 0.125f, 3.0f);
            break;
        default:
            for (int k = 0; k < steps; ++k) x = fmaf(x, 0.0625f, 4.0f);
    }
    out[i] = x;
}
