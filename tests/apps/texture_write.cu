// Smooths a line that is read through a texture.
// Racy: the result goes where the texture reads from, and a barrier does not make that right.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: CR009
//@[racy] not-as-on-gpu: texture fetches have no cells
#include "app.h"

__global__ void smooth(cudaTextureObject_t line, int *out) {
    const int t = threadIdx.x;
    int sum = tex1Dfetch<int>(line, t);  //~ race A
    if (t > 0) sum += tex1Dfetch<int>(line, t - 1);  //~ race B
    __syncthreads();
    out[t] = sum;  //~ race A B
}

int main() {
    const int n = 96;
    int in[n], out[n];
    for (int i = 0; i < n; i++) in[i] = i * i;
    int *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, sizeof in));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device_in;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = sizeof in;
    cudaTextureDesc how = {};
    cudaTextureObject_t line;
    CHECK(cudaCreateTextureObject(&line, &resource, &how, nullptr));
#ifdef RACY
    device_out = device_in;
#endif
    smooth<<<1, n>>>(line, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right &= out[i] == in[i] + (i > 0 ? in[i - 1] : 0);
    CHECK(cudaDestroyTextureObject(line));
    return verdict(right);
}
