// Look-ups in a B+ tree: a block per query goes down from the root, a thread per key of a node.
// The one thread whose key range holds the query writes the next node to shared memory.
// One kernel finds single keys, the other counts the keys of a range between two leaves.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: this-data
#include "bench.h"
#include <climits>

// Keys of a node; a node has as many children, child i holding the keys from keys[i] up to keys[i + 1].
const int fan = 32;

struct Node {
    int keys[fan + 1];
    // Of a leaf: the position of the key.
    int children[fan];
};

__global__ void find(const Node *nodes, int root, int height, const int *queries, int *answers) {
    __shared__ int at;
    int query = queries[blockIdx.x], key = threadIdx.x;
    if (key == 0) {
        at = root;
        answers[blockIdx.x] = -1;
    }
    __syncthreads();
    for (int level = 1; level < height; level++) {
        const Node *node = &nodes[at];
        __syncthreads();
        if (node->keys[key] <= query && query < node->keys[key + 1]) at = node->children[key];
        __syncthreads();
    }
    if (nodes[at].keys[key] == query) answers[blockIdx.x] = nodes[at].children[key];
}

// The number of keys k with from <= k < to; both ends are walked down at the same time.
__global__ void count_range(const Node *nodes, int root, int height, const int *from, const int *to, int *counts) {
    __shared__ int at[2], position[2];
    int ends[2] = {from[blockIdx.x], to[blockIdx.x]}, key = threadIdx.x;
    if (key < 2) at[key] = root;
    __syncthreads();
    for (int level = 1; level <= height; level++) {
        int node[2] = {at[0], at[1]};
        __syncthreads();
        for (int end = 0; end < 2; end++) {
            const Node *here = &nodes[node[end]];
            if (here->keys[key] <= ends[end] && ends[end] < here->keys[key + 1]) {
                if (level < height) at[end] = here->children[key];
                else position[end] = here->children[key] + (here->keys[key] < ends[end]);
            }
        }
        __syncthreads();
    }
    if (key == 0) counts[blockIdx.x] = position[1] - position[0];
}

// A full tree over the even numbers from 0, leaves first, so that a position is half its key.
std::vector<Node> build(int keys, int *root, int *height) {
    std::vector<Node> nodes;
    std::vector<int> firsts, children;
    for (int i = 0; i < keys; i++) {
        firsts.push_back(2 * i);
        children.push_back(i);
    }
    for (*height = 0; children.size() > 1 || *height == 0; ++*height) {
        std::vector<int> upper_firsts, upper;
        for (size_t first = 0; first < children.size(); first += fan) {
            Node node;
            for (int i = 0; i <= fan; i++) {
                bool there = first + i < firsts.size();
                node.keys[i] = there ? firsts[first + i] : INT_MAX;
                if (i < fan) node.children[i] = there ? children[first + i] : -1;
            }
            upper_firsts.push_back(node.keys[0]);
            upper.push_back(int(nodes.size()));
            nodes.push_back(node);
        }
        firsts.swap(upper_firsts);
        children.swap(upper);
    }
    *root = children[0];
    return nodes;
}

int main(int argc, char **argv) {
    const int keys = pick(argc, argv, 4096, 1 << 22, 1 << 24), count = pick(argc, argv, 128, 1 << 18, 1 << 21);
    int root, height;
    std::vector<Node> nodes = build(keys, &root, &height);
    Random random = {7};
    std::vector<int> queries(count), from(count), to(count);
    for (int i = 0; i < count; i++) {
        queries[i] = random(2 * keys);
        from[i] = random(2 * keys);
        to[i] = from[i] + random(2 * keys - from[i]);
    }
    Buffer<Node> device_nodes(nodes);
    Buffer<int> device_queries(queries), device_from(from), device_to(to), answers(count), counts(count);
    find<<<count, fan>>>(device_nodes, root, height, device_queries, answers);
    count_range<<<count, fan>>>(device_nodes, root, height, device_from, device_to, counts);
    CHECK(cudaGetLastError());
    std::vector<int> answer = answers.download(), counted = counts.download();
    bool right = true;
    for (int i = 0; i < count; i++) {
        right = right && answer[i] == (queries[i] % 2 == 0 ? queries[i] / 2 : -1);
        right = right && counted[i] == (to[i] + 1) / 2 - (from[i] + 1) / 2;
    }
    return verdict(right);
}
