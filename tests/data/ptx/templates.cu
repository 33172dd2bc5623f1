namespace tools {
template <typename T, int N>
__global__ void scale(T* values, T factor, int n) {
    T local[N];
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int i = 0; i < N; ++i) local[i] = first + i < n ? values[first + i] * factor : T(0);
    for (int i = 0; i < N; ++i)
        if (first + i < n) values[first + i] = local[(i + n) % N];
}
}
template __global__ void tools::scale<float, 4>(float*, float, int);
template __global__ void tools::scale<double, 3>(double*, double, int);
