// What the kernels share: a warp of 32 threads works on a row, and thread `LANE` on atoms LANE, LANE + 32, ...
//
// The macros are set for each variant that is compiled:
//   GAINS      atoms per thread
//   COVERS     1 for OR, 0 for XOR
//   UNKNOWN    1 if some cells are unknown
//   PRICED     1 if errors and uses of atoms have prices
//   OWN_COSTS  1 if missed and added ones have prices of their own (under OR)
//   BY_RATIO   1 to choose atoms by gain per bit
//   REFUSED    a price at which no row uses an atom
// tests/support/cuda_emulation.h defines the functions of CUDA for a processor, so that tests need no device.
#pragma once

typedef unsigned long long Word;
typedef long long Int64;

// Before loops over the atoms of a thread: the gains are in registers only if such loops are unrolled, but then it takes
// minutes to compile them for many atoms.
#if GAINS > 256
#define UNROLL _Pragma("unroll 4")
#else
#define UNROLL _Pragma("unroll")
#endif

#define LANE (int(threadIdx.x) & 31)
#define ALL_LANES 0xffffffffu
#define WARPS_PER_BLOCK (int(blockDim.x) >> 5)
#define WARP (int(blockIdx.x) * WARPS_PER_BLOCK + (int(threadIdx.x) >> 5))
#define N_WARPS (int(gridDim.x) * WARPS_PER_BLOCK)
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

#ifndef EMULATED  // where sums over the threads of a warp take long in steps
__device__ __forceinline__ Int64 warp_sum(Int64 value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

__device__ __forceinline__ Int64 warp_max(Int64 value) {
    for (int step = 16; step > 0; step >>= 1) value = max(value, __shfl_xor_sync(ALL_LANES, value, step));
    return value;
}

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ int warp_sum(int value) {
    return __reduce_add_sync(ALL_LANES, value);
}

__device__ __forceinline__ int warp_max(int value) {
    return __reduce_max_sync(ALL_LANES, value);
}
#else
__device__ __forceinline__ int warp_sum(int value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

__device__ __forceinline__ int warp_max(int value) {
    for (int step = 16; step > 0; step >>= 1) value = max(value, __shfl_xor_sync(ALL_LANES, value, step));
    return value;
}
#endif
#endif

__device__ __forceinline__ int warp_min(int value) {
    return -warp_max(-value);
}

__device__ __forceinline__ int lowest_bit(Word word) {
    return __ffsll((Int64)word) - 1;
}

__device__ __forceinline__ bool has_bit(const Word* words, int i) {
    return words[i >> 6] >> (i & 63) & 1;
}

// The number of ones of a row.
__device__ __forceinline__ int weight(const Word* words, int n_words) {
    int total = 0;
    for (int w = LANE; w < n_words; w += 32) total += __popcll(words[w]);
    return warp_sum(total);
}

// The number of bits in which two rows differ.
__device__ __forceinline__ int distance(const Word* words, const Word* others, int n_words) {
    int total = 0;
    for (int w = LANE; w < n_words; w += 32) total += __popcll(words[w] ^ others[w]);
    return warp_sum(total);
}

// Add the numbers of code and error bits that a warp changed.
__device__ __forceinline__ void add_changes(Int64 n_codes, Int64 n_errors, Word* changes) {
    if (LANE == 0) {
        atomicAdd(changes, Word(n_codes));
        atomicAdd(changes + 1, Word(n_errors));
    }
}

__device__ __forceinline__ void copy_words(const Word* words, Word* out, int n_words) {
    for (int w = LANE; w < n_words; w += 32) out[w] = words[w];
    __syncwarp();
}
