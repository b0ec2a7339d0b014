// Fetches with a level of detail or gradients, which say nothing without mipmaps, and gathers of four texels.
//@ variants: clean
//@ expect: no-race
//@ not-as-on-gpu: texture fetches have no cells
#include "app.h"

const int width = 16, height = 8;

__global__ void fetch(cudaTextureObject_t texture, const float2 *at, float *levels, float *gradients, float4 *gathered) {
    int i = threadIdx.x;
    float x = at[i].x, y = at[i].y;
    levels[i] = tex2DLod<float2>(texture, x, y, 0).x;
    gradients[i] = tex2DGrad<float2>(texture, x, y, make_float2(0.1f, 0), make_float2(0, 0.1f)).y;
    gathered[2 * i] = tex2Dgather<float4>(texture, x, y, 0);
    gathered[2 * i + 1] = tex2Dgather<float4>(texture, x, y, 1);
}

static float2 texels[height][width];

static int clamp(int at, int size) { return at < 0 ? 0 : at >= size ? size - 1 : at; }
static float2 texel(int x, int y) { return texels[clamp(y, height)][clamp(x, width)]; }

int main() {
    const int n = 256;
    for (int i = 0; i < width * height; i++) texels[i / width][i % width] = make_float2(i * i, 1000 - i);
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float2>();
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    CHECK(cudaMallocArray(&resource.res.array.array, &channel, width, height, cudaArrayTextureGather));
    CHECK(cudaMemcpy2DToArray(resource.res.array.array, 0, 0, texels, sizeof texels[0], sizeof texels[0], height,
                              cudaMemcpyHostToDevice));
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    float2 *at;
    float *levels, *gradients;
    float4 *gathered;
    CHECK(cudaMallocManaged(&at, n * sizeof *at));
    CHECK(cudaMallocManaged(&levels, n * sizeof *levels));
    CHECK(cudaMallocManaged(&gradients, n * sizeof *gradients));
    CHECK(cudaMallocManaged(&gathered, 2 * n * sizeof *gathered));
    Random random{4};
    // Odd sixteenths are far enough from the edges of texels and from their middles.
    for (int i = 0; i < n; i++) {
        at[i].x = (2 * int(random(8 * (width + 4))) + 1) / 16.0f - 2;
        at[i].y = (2 * int(random(8 * (height + 4))) + 1) / 16.0f - 2;
    }
    fetch<<<1, n>>>(texture, at, levels, gradients, gathered);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < n; i++) {
        int x = int(at[i].x + 8) - 8, y = int(at[i].y + 8) - 8;
        right &= levels[i] == texel(x, y).x && gradients[i] == texel(x, y).y;
        // The texels that linear filtering would mix, counter-clockwise from the lower left.
        x = int(at[i].x + 7.5f) - 8, y = int(at[i].y + 7.5f) - 8;
        float2 corners[4] = {texel(x, y + 1), texel(x + 1, y + 1), texel(x + 1, y), texel(x, y)};
        float4 first = gathered[2 * i], second = gathered[2 * i + 1];
        right &= first.x == corners[0].x && first.y == corners[1].x && first.z == corners[2].x && first.w == corners[3].x;
        right &= second.x == corners[0].y && second.y == corners[1].y && second.z == corners[2].y && second.w == corners[3].y;
    }
    CHECK(cudaDestroyTextureObject(texture));
    return verdict(right);
}
