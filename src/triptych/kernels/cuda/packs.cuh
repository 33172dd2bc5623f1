// Neighbouring elements that one instruction loads or stores.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) Pack {
    T elements[WIDTH];
};

template <int WIDTH, typename T> __device__ Pack<T, WIDTH> load(const T *place) {
    return *reinterpret_cast<const Pack<T, WIDTH> *>(place);
}

template <typename T, int WIDTH> __device__ void store(T *place, const Pack<T, WIDTH> &pack) {
    *reinterpret_cast<Pack<T, WIDTH> *>(place) = pack;
}
