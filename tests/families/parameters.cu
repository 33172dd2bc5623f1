struct Nothing {};
union Either { int whole; float real; unsigned char bytes[8]; };
struct Inner { char tag; double value; short pair[3]; };
struct Image { float *data; int width, height; long long pitch; };
struct alignas(16) Wide { float x, y, z; };
struct Everything { Nothing nothing; Inner inner[2]; Either either; Image image; bool flag; Wide wide; };

template <typename T> struct Plus { __device__ T operator()(T a, T b) const { return a + b; } };
struct Scaled { float by; __device__ float operator()(float a, float b) const { return by * a - b; } };

extern "C" __global__ void empty(Nothing, int *out, Nothing, int value) { out[threadIdx.x] = value + sizeof(Nothing); }

extern "C" __global__ void either(Either value, int how, double *out) {
    *out = how == 0 ? (double)value.whole : how == 1 ? value.real : value.bytes[threadIdx.x + 5];
}

// Rows upside down, in place; the struct holds a pointer.
extern "C" __global__ void flip(Image image) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= image.width) return;
    float &a = image.data[y * image.pitch + x], &b = image.data[(image.height - 1 - y) * image.pitch + x];
    float held = a;
    a = b;
    b = held;
}

extern "C" __global__ void everything(Everything all, double *out) {
    int k = 0;
    for (int i = 0; i < 2; ++i) {
        out[k++] = all.inner[i].tag;
        out[k++] = all.inner[i].value;
        for (int j = 0; j < 3; ++j) out[k++] = all.inner[i].pair[j];
    }
    out[k++] = all.either.real; out[k++] = all.image.data[1]; out[k++] = all.image.height; out[k++] = all.image.pitch;
    out[k++] = all.flag; out[k++] = all.wide.x; out[k++] = all.wide.y; out[k++] = all.wide.z;
}

// The thread chooses the place at run time, so that the parameter is read by address.
struct Table { int of[40]; };
extern "C" __global__ void looked_up(const __grid_constant__ Table table, const int *places, int *out) {
    out[threadIdx.x] = table.of[places[threadIdx.x]];
}
extern "C" __global__ void changed(Table table, int *out) {
    for (int i = 0; i < 40; ++i) table.of[(i * 7 + threadIdx.x) % 40] += i;
    out[threadIdx.x] = table.of[threadIdx.x];
}

template <typename T, typename Operator> __global__ void combine(const T *a, const T *b, T *out, Operator op, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = op(a[i], b[i]);
}

__device__ float add(float a, float b) { return a + b; }
__device__ float largest(float a, float b) { return fmaxf(a, b); }
template <float (*OPERATION)(float, float)> __global__ void fold(const float *rows, float *out, int width) {
    float result = rows[threadIdx.x * width];
    for (int i = 1; i < width; ++i) result = OPERATION(result, rows[threadIdx.x * width + i]);
    out[threadIdx.x] = result;
}

// A list in device memory: each node points to the next.
struct Node { int value; Node *next; };
extern "C" __global__ void link(Node *nodes, const int *order, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        nodes[order[i]].value = i * i;
        nodes[order[i]].next = i + 1 < count ? &nodes[order[i + 1]] : nullptr;
    }
}
extern "C" __global__ void follow(const Node *nodes, const int *order, int *sum) {
    for (const Node *node = &nodes[order[threadIdx.x]]; node; node = node->next) sum[threadIdx.x] += node->value;
}
