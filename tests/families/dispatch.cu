struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual int corners() const { return 4; }
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
    __device__ int corners() const override { return 0; }
};

// Objects made on the device; neighbouring lanes call different functions.
extern "C" __global__ void areas(const float *sizes, float *out, int *corners, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Square square(sizes[i]);
    Circle circle(sizes[i]);
    const Shape *shape = i % 3 == 0 ? (const Shape *)&circle : &square;
    out[i] = shape->area();
    corners[i] = shape->corners();
}

typedef int (*Operation)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ Operation OPERATIONS[3] = {add, subtract, multiply};

extern "C" __global__ void chosen(const int *which, const int *a, const int *b, int *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = OPERATIONS[which[i]](a[i], b[i]);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }

extern "C" __global__ void recursive(const int *n, int *numbers, int *evens) {
    numbers[threadIdx.x] = fibonacci(n[threadIdx.x]);
    evens[threadIdx.x] = even(n[threadIdx.x]);
}

// Sorts by recursion on memory of its own: each thread a row.
__device__ __noinline__ void quick(int *values, int low, int high) {
    while (low < high) {
        int pivot = values[(low + high) / 2], i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) ++i;
            while (values[j] > pivot) --j;
            if (i <= j) {
                int held = values[i];
                values[i++] = values[j];
                values[j--] = held;
            }
        }
        quick(values, low, j);
        low = i;
    }
}
extern "C" __global__ void sort_rows(int *rows, int width) {
    int own[40];
    for (int i = 0; i < width; ++i) own[i] = rows[threadIdx.x * width + i];
    quick(own, 0, width - 1);
    for (int i = 0; i < width; ++i) rows[threadIdx.x * width + i] = own[i];
}
