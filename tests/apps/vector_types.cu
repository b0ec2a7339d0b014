// Loads and stores of several elements at once, and of single bytes next to each other.
// Racy: the vectors of two threads overlap by half; the bytes stay apart in both variants.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define PLACE(i) (2 * (i) / 2)
#else
#define PLACE(i) (2 * (i))
#endif

__global__ void widen(const uchar4 *in, int2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar4 v = in[i];
    int2 *place = out + PLACE(i);
    place[0] = make_int2(v.x, v.y);        //~ race A
    place[1] = make_int2(v.z, 256 + v.w);  //~ race A
}

// Each thread owns one byte of a word.
__global__ void invert(unsigned char *bytes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) bytes[i] = ~bytes[i];
}

__global__ void swap_halves(int4 *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int4 v = data[i];
        data[i] = make_int4(v.z, v.w, v.x, v.y);
    }
}

int main() {
    const int n = 600;
    static unsigned char in[4 * n];
    static int out[4 * n];
    for (int i = 0; i < 4 * n; i++) in[i] = i;
    unsigned char *device_in;
    int *device_out;
    CHECK(cudaMalloc(&device_in, sizeof in));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    invert<<<(4 * n + 30) / 31, 31>>>(device_in, 4 * n);
    widen<<<(n + 63) / 64, 64>>>((uchar4 *)device_in, (int2 *)device_out, n);
    swap_halves<<<(n + 63) / 64, 64>>>((int4 *)device_out, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 4 * n; i++) {
        int value = (unsigned char)~in[i] + (i % 4 == 3 ? 256 : 0);
        right = right && out[i ^ 2] == value;
    }
    return verdict(right);
}
