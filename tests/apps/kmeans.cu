// The assignment step of k-means: each point joins its nearest centre and adds itself to that centre's sums.
// Racy: the sum of the coordinates is not atomic (the number of points is).
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int points = 3000, centres = 7, dimensions = 3;

__constant__ int centre[centres][dimensions];

__global__ void assign(const int *point, int *member, int *sums, int *sizes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
    int best = 0, best_distance = 0x7fffffff;
    for (int c = 0; c < centres; c++) {
        int distance = 0;
        for (int d = 0; d < dimensions; d++) {
            int difference = point[i * dimensions + d] - centre[c][d];
            distance += difference * difference;
        }
        if (distance < best_distance) {
            best = c;
            best_distance = distance;
        }
    }
    member[i] = best;
    atomicAdd(&sizes[best], 1);
    for (int d = 0; d < dimensions; d++) {
#ifdef RACY
        sums[best * dimensions + d] += point[i * dimensions + d];  //~ race A A
#else
        atomicAdd(&sums[best * dimensions + d], point[i * dimensions + d]);
#endif
    }
}

int main() {
    static int point[points * dimensions], member[points];
    int centres_now[centres][dimensions], sums[centres * dimensions], sizes[centres];
    Random random = {6};
    for (int i = 0; i < points * dimensions; i++) point[i] = random(1000);
    for (auto &one : centres_now) {
        for (int &coordinate : one) coordinate = random(1000);
    }
    CHECK(cudaMemcpyToSymbol(centre, centres_now, sizeof centres_now));
    int *device_point, *device_member, *device_sums, *device_sizes;
    CHECK(cudaMalloc(&device_point, sizeof point));
    CHECK(cudaMalloc(&device_member, sizeof member));
    CHECK(cudaMalloc(&device_sums, sizeof sums));
    CHECK(cudaMalloc(&device_sizes, sizeof sizes));
    CHECK(cudaMemcpy(device_point, point, sizeof point, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_sums, 0, sizeof sums));
    CHECK(cudaMemset(device_sizes, 0, sizeof sizes));
    assign<<<(points + 127) / 128, 128>>>(device_point, device_member, device_sums, device_sizes);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(member, device_member, sizeof member, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sizes, device_sizes, sizeof sizes, cudaMemcpyDeviceToHost));

    bool right = true;
    for (int i = 0; i < points; i++) {
        int best = 0, best_distance = 0x7fffffff;
        for (int c = 0; c < centres; c++) {
            int distance = 0;
            for (int d = 0; d < dimensions; d++) {
                int difference = point[i * dimensions + d] - centres_now[c][d];
                distance += difference * difference;
            }
            if (distance < best_distance) {
                best = c;
                best_distance = distance;
            }
        }
        right = right && member[i] == best;
        sizes[best]--;
        for (int d = 0; d < dimensions; d++) sums[best * dimensions + d] -= point[i * dimensions + d];
    }
    for (int c = 0; c < centres; c++) {
        right = right && sizes[c] == 0;
        for (int d = 0; d < dimensions; d++) right = right && sums[c * dimensions + d] == 0;
    }
    return verdict(right);
}
