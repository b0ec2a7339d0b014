// Shrinks an image and gives it another palette: one texture over a pitched buffer, one over an array, both mixed
// linearly, and a table in linear memory.
// Racy: the blocks add up the brightness without atomics.
//@[clean] expect: no-race
//@[racy] expect: race
#include <cmath>
#include "app.h"

const int width = 61, height = 43;           // of the image, in texels
const int out_width = 40, out_height = 24;   // of the result
const int levels = 64;                       // of the table
const int tile = 8;

__global__ void filter(cudaTextureObject_t image, cudaTextureObject_t shade, cudaTextureObject_t table, float *out,
                       float *total) {
    __shared__ float sum;
    if (threadIdx.x == 0 && threadIdx.y == 0) sum = 0;
    __syncthreads();
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    // The image in coordinates from 0 to 1, going over its edges; the shade in texels.
    float u = 1.5f * (x + 0.5f) / out_width - 0.25f, v = 1.5f * (y + 0.5f) / out_height - 0.25f;
    float4 colour = tex2D<float4>(image, u, v);
    float bright = 0.25f * (colour.x + colour.y + colour.z + colour.w) * tex2D<float>(shade, 0.3f * x, 0.4f * y);
    int level = (int)(bright * levels) * 2 - levels / 2;  // some are outside of the table
    float value = bright + 0.001f * tex1Dfetch<short>(table, level);
    out[y * out_width + x] = value;
    atomicAdd(&sum, value);
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
#ifdef RACY
        *total += sum;  //~ race A A
#else
        atomicAdd(total, sum);
#endif
    }
}

// One axis of the programming guide's linear filtering: the lower texel, and the weight of the next in 1/256.
struct Taps {
    int low;
    double weight;
    explicit Taps(double x) {
        low = (int)std::floor(x - 0.5);
        weight = std::floor((x - 0.5 - low) * 256 + 0.5) / 256;
    }
};

template <typename Texel>
double mixed(double x, double y, Texel texel) {
    Taps h(x), v(y);
    double upper = (1 - h.weight) * texel(h.low, v.low) + h.weight * texel(h.low + 1, v.low);
    double lower = (1 - h.weight) * texel(h.low, v.low + 1) + h.weight * texel(h.low + 1, v.low + 1);
    return (1 - v.weight) * upper + v.weight * lower;
}

int mirrored(int at, int n) {
    at = ((at % (2 * n)) + 2 * n) % (2 * n);
    return at < n ? at : 2 * n - 1 - at;
}

int main() {
    static uchar4 image[height][width];
    static float shade[out_height][out_width];
    static short table[levels];
    Random random = {7};
    for (auto &row : image) {
        for (auto &texel : row) {
            texel = make_uchar4(random(256), random(256), random(256), random(256));
        }
    }
    for (auto &row : shade) {
        for (auto &texel : row) texel = 0.5f + random(100) / 100.0f;
    }
    for (auto &level : table) level = (short)random(1000) - 500;

    uchar4 *device_image;
    short *device_table;
    float *device_out, *device_total;
    size_t pitch;
    CHECK(cudaMallocPitch(&device_image, &pitch, sizeof image[0], height));
    CHECK(cudaMemcpy2D(device_image, pitch, image, sizeof image[0], sizeof image[0], height, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&device_table, sizeof table));
    CHECK(cudaMemcpy(device_table, table, sizeof table, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&device_out, sizeof(float) * out_width * out_height));
    CHECK(cudaMalloc(&device_total, sizeof(float)));
    CHECK(cudaMemset(device_total, 0, sizeof(float)));
    cudaArray_t array;
    cudaChannelFormatDesc real = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &real, out_width, out_height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, shade, sizeof shade[0], sizeof shade[0], out_height,
                              cudaMemcpyHostToDevice));

    cudaTextureObject_t of_image, of_shade, of_table;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = device_image;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc how = {};
    how.addressMode[0] = cudaAddressModeMirror;
    how.addressMode[1] = cudaAddressModeWrap;
    how.filterMode = cudaFilterModeLinear;
    how.readMode = cudaReadModeNormalizedFloat;
    how.normalizedCoords = 1;
    CHECK(cudaCreateTextureObject(&of_image, &resource, &how, nullptr));
    resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeBorder;
    how.filterMode = cudaFilterModeLinear;
    how.borderColor[0] = 0.25f;
    CHECK(cudaCreateTextureObject(&of_shade, &resource, &how, nullptr));
    resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device_table;
    resource.res.linear.desc = cudaCreateChannelDesc<short>();
    resource.res.linear.sizeInBytes = sizeof table;
    how = {};
    CHECK(cudaCreateTextureObject(&of_table, &resource, &how, nullptr));

    filter<<<dim3(out_width / tile, out_height / tile), dim3(tile, tile)>>>(of_image, of_shade, of_table, device_out,
                                                                          device_total);
    CHECK(cudaGetLastError());
    static float out[out_height][out_width];
    float total;
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost));

    bool right = true;
    double sum = 0;
    for (int y = 0; y < out_height; y++) {
        for (int x = 0; x < out_width; x++) {
            float u = 1.5f * (x + 0.5f) / out_width - 0.25f, v = 1.5f * (y + 0.5f) / out_height - 0.25f;
            double colour = mixed((double)u * width, (double)v * height, [&](int at_x, int at_y) {
                uchar4 c = image[(at_y % height + height) % height][mirrored(at_x, width)];
                return (c.x + c.y + c.z + c.w) / 255.0 / 4;
            });
            double bright = colour * mixed(0.3f * x, 0.4f * y, [&](int at_x, int at_y) {
                bool inside = at_x >= 0 && at_x < out_width && at_y >= 0 && at_y < out_height;
                return inside ? (double)shade[at_y][at_x] : 0.25;
            });
            // Close to the border of two levels either is right.
            bool close = false;
            for (double slip : {-1e-5, 0.0, 1e-5}) {
                int level = (int)((bright + slip) * levels) * 2 - levels / 2;
                double expected = bright + 0.001 * (level >= 0 && level < levels ? table[level] : 0);
                close = close || std::fabs(out[y][x] - expected) < 1e-4;
            }
            right = right && close;
            sum += out[y][x];
        }
    }
    right = right && std::fabs(total - sum) < 0.01;
    CHECK(cudaDestroyTextureObject(of_image));
    CHECK(cudaDestroyTextureObject(of_shade));
    CHECK(cudaDestroyTextureObject(of_table));
    CHECK(cudaFreeArray(array));
    return verdict(right);
}
