// Every block prints one line from the device.
// Racy: the blocks share the place for what they print.
//@[clean] expect: no-race
//@[racy] expect: race
//@ stdout: block 2 of 3 says 1.50 and done
#include "app.h"

#ifdef RACY
#define PLACE 0
#else
#define PLACE blockIdx.x
#endif

__global__ void say(float *values) {
    values[PLACE] = 0.75f * blockIdx.x;  //~ race A A
    printf("block %d of %d says %.2f and %s\n", blockIdx.x, gridDim.x, 0.75f * blockIdx.x, "done");
}

int main() {
    float values[3], *device_values;
    CHECK(cudaMalloc(&device_values, sizeof values));
    say<<<3, 1>>>(device_values);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(values, device_values, sizeof values, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 3; i++) right = right && values[i] == 0.75f * i;
    return verdict(right);
}
