template <typename T> struct Four { typedef float4 Of; };
template <> struct Four<double> { typedef double4_16a Of; };
__device__ float inverse_root(float x) { return rsqrtf(x); }
__device__ double inverse_root(double x) { return rsqrt(x); }

// Each thread one body (mass in w), a tile of the others in shared memory at a time; then a step in time.
template <typename T> __global__ void step(const typename Four<T>::Of *bodies, typename Four<T>::Of *moved,
                                           typename Four<T>::Of *speeds, T softening, T time, int count) {
    extern __shared__ char memory[];
    auto tile = (typename Four<T>::Of *)memory;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto own = bodies[min(i, count - 1)];
    T ax = 0, ay = 0, az = 0;
    for (int start = 0; start < count; start += blockDim.x) {
        int other = start + threadIdx.x;
        tile[threadIdx.x] = bodies[min(other, count - 1)];
        if (other >= count) tile[threadIdx.x].w = 0;
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < blockDim.x; ++k) {
            T x = tile[k].x - own.x, y = tile[k].y - own.y, z = tile[k].z - own.z;
            T inverse = inverse_root(x * x + y * y + z * z + softening);
            T strength = tile[k].w * inverse * inverse * inverse;
            ax += x * strength; ay += y * strength; az += z * strength;
        }
        __syncthreads();
    }
    if (i >= count) return;
    auto speed = speeds[i];
    speed.x += ax * time; speed.y += ay * time; speed.z += az * time;
    own.x += speed.x * time; own.y += speed.y * time; own.z += speed.z * time;
    speeds[i] = speed;
    moved[i] = own;
}
