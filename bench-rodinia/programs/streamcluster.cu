// Stream clustering: would it pay to open a centre at some point?
// A kernel asks every point what it would gain from going there, and adds up per open centre, in a row of its own,
// what that centre's points would gain; the host sums the rows, closes centres that are no longer worth their price,
// and asks about the next candidate. Coordinates are whole numbers, so that sums are exact in any order.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: this-data
#include "bench.h"

const int dimensions = 16, threads = 128, price = 20000;

// coordinates[d * points + p]: those of neighbouring points side by side.
__global__ void gains(int points, int candidate, int centres, const int *coordinates, const int *cost,
                      const int *centre, const int *number, int *rows, int *switches) {
    __shared__ int target[dimensions];
    if (threadIdx.x < dimensions) target[threadIdx.x] = coordinates[threadIdx.x * points + candidate];
    __syncthreads();
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= points) return;
    int distance = 0;
    for (int d = 0; d < dimensions; d++) {
        int difference = coordinates[d * points + p] - target[d];
        distance += difference * difference;
    }
    int *row = &rows[size_t(p) * (centres + 1)];
    for (int c = 0; c <= centres; c++) row[c] = 0;
    int gain = cost[p] - distance;
    switches[p] = gain > 0;
    // The last column is for those who go by themselves; the others would have to follow if their centre closed.
    row[gain > 0 ? centres : number[centre[p]]] += gain;
}

struct Clustering {
    std::vector<int> centre, cost;
};

// Decides about a candidate, from what the open centres' points and all switching points would gain.
bool open(Clustering &now, int candidate, const std::vector<int> &open_centres, const std::vector<int> &number,
          const std::vector<long long> &gained, const std::vector<int> &switches,
          const std::vector<int> &distance) {
    long long total = gained.back() - price;
    std::vector<bool> closes(open_centres.size());
    for (size_t c = 0; c < open_centres.size(); c++) {
        closes[c] = gained[c] + price > 0;
        if (closes[c]) total += gained[c] + price;
    }
    if (total <= 0) return false;
    for (size_t p = 0; p < now.centre.size(); p++) {
        if (!switches[p] && !closes[number[now.centre[p]]]) continue;
        now.centre[p] = candidate;
        now.cost[p] = distance[p];
    }
    return true;
}

int main(int argc, char **argv) {
    const int points = pick(argc, argv, 3000, 1 << 17, 1 << 20), candidates = pick(argc, argv, 6, 40, 80);
    Random random = {47};
    std::vector<int> coordinates(size_t(points) * dimensions);
    for (int p = 0; p < points; p++) {
        int group = random(8);
        for (int d = 0; d < dimensions; d++) coordinates[size_t(d) * points + p] = 16 * (group >> d % 3 & 1) + random(8);
    }
    auto distances = [&](int to) {
        std::vector<int> result(points);
        for (int d = 0; d < dimensions; d++) {
            const int *row = &coordinates[size_t(d) * points];
            for (int p = 0; p < points; p++) result[p] += (row[p] - row[to]) * (row[p] - row[to]);
        }
        return result;
    };
    Clustering now = {std::vector<int>(points, 0), distances(0)};
    Buffer<int> device_coordinates(coordinates), cost(points), centre(points), device_number(points), switches(points);
    bool right = true;
    int opened = 1;
    for (int round = 0; round < candidates; round++) {
        int candidate = random(points);
        std::vector<int> number(points, -1), centres;
        for (int p = 0; p < points; p++) {
            int c = now.centre[p];
            if (number[c] >= 0) continue;
            number[c] = int(centres.size());
            centres.push_back(c);
        }
        int count = int(centres.size());
        Buffer<int> rows(size_t(points) * (count + 1));
        cost.upload(now.cost);
        centre.upload(now.centre);
        device_number.upload(number);
        gains<<<blocks(points, threads), threads>>>(points, candidate, count, device_coordinates, cost, centre,
                                                    device_number, rows, switches);
        CHECK(cudaGetLastError());
        std::vector<int> row = rows.download(), switching = switches.download();
        std::vector<long long> gained(count + 1), expected(count + 1);
        for (size_t i = 0; i < row.size(); i++) gained[i % (count + 1)] += row[i];

        std::vector<int> distance = distances(candidate);
        for (int p = 0; p < points; p++) {
            int gain = now.cost[p] - distance[p];
            expected[gain > 0 ? count : number[now.centre[p]]] += gain;
            right = right && switching[p] == (gain > 0);
        }
        right = right && gained == expected;
        opened += open(now, candidate, centres, number, gained, switching, distance);
    }
    std::printf("%d of %d candidates opened\n", opened - 1, candidates);
    return verdict(right);
}
