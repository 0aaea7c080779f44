// The functions of CUDA that the kernels use, for a processor: each thread of a block is a fiber, and fibers of a warp
// wait for each other where they exchange values. Slow, and exact: a test needs no device. The C++ library is not
// included, because it would take half of the time of compiling a kernel.
#pragma once
#undef _FORTIFY_SOURCE  // it takes jumps between stacks for errors
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>

#define __global__
#define __launch_bounds__(...)
#define __device__
#define __forceinline__ inline
#define DYNAMIC_SHARED(type, name) type* name = (type*)emulation::shared

struct uint4 { unsigned x, y, z, w; };
struct Dimension { unsigned x; };
static Dimension threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {
struct Fiber { ucontext_t context; jmp_buf resumed; char* stack; bool started, done; };
struct Warp { unsigned long long values[2][32]; int n_arrived; long generation; };
constexpr int MAX_THREADS = 1024, STACK_BYTES = 1 << 16;
static unsigned long long* shared;
static Fiber fibers[MAX_THREADS];
static Warp warps[MAX_THREADS / 32];
static jmp_buf scheduler;
static unsigned current;
static void (*body)();
static void *given_kernel, **given_arguments;

static void yield() {
    const unsigned own = current;
    if (!_setjmp(fibers[own].resumed)) _longjmp(scheduler, 1);
}

static void run_fiber() {
    for (;;) {
        body();
        fibers[current].done = true;
        yield();
    }
}

// Prepare a fiber for a kernel. It is created once: contexts take system calls.
static void prepare(Fiber& fiber) {
    fiber.done = false;
    if (fiber.stack) return;
    fiber.stack = (char*)malloc(STACK_BYTES);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
}

// Run a fiber until it waits or is done.
__attribute__((noinline)) static void resume(Fiber& fiber) {
    if (_setjmp(scheduler)) return;
    if (fiber.started) _longjmp(fiber.resumed, 1);
    fiber.started = true;
    setcontext(&fiber.context);
}

// Wait for all threads of the warp, and return the values that they gave.
static const unsigned long long* exchange(unsigned long long value) {
    Warp& warp = warps[threadIdx.x >> 5];
    const long generation = warp.generation;
    unsigned long long* values = warp.values[generation & 1];
    values[threadIdx.x & 31] = value;
    if (++warp.n_arrived == 32) {
        warp.n_arrived = 0;
        warp.generation++;
    } else {
        while (warp.generation == generation) yield();
    }
    return values;
}

template <int... Values> struct Index {};
template <int N, int... Values> struct UpTo : UpTo<N - 1, N - 1, Values...> {};
template <int... Values> struct UpTo<0, Values...> { using Type = Index<Values...>; };

template <class... Arguments, int... I> static void call(Index<I...>) {
    ((void (*)(Arguments...))given_kernel)(*(Arguments*)given_arguments[I]...);
}
template <class... Arguments> static void call_kernel() {
    call<Arguments...>(typename UpTo<sizeof...(Arguments)>::Type());
}

template <class... Arguments>
static void launch(void (*kernel)(Arguments...), int n_blocks, int n_threads, int n_shared, void** arguments) {
    blockDim.x = n_threads;
    gridDim.x = n_blocks;
    body = call_kernel<Arguments...>;
    given_kernel = (void*)kernel;
    given_arguments = arguments;
    if (n_threads > MAX_THREADS) abort();
    const int n_words = n_shared / 8 + 1;
    shared = (unsigned long long*)malloc(8 * n_words);
    for (int block = 0; block < n_blocks; block++) {
        blockIdx.x = block;
        __builtin_memset(shared, 0xA5, 8 * n_words);  // memory that nobody wrote is not zero
        __builtin_memset(warps, 0, sizeof(warps));
        for (int i = 0; i < n_threads; i++) prepare(fibers[i]);
        int n_idle = 0;
        for (int n_left = n_threads; n_left > 0;) {
            long progress = 0;
            for (int i = 0; i < n_threads; i++) {
                if (fibers[i].done) continue;
                current = threadIdx.x = i;
                const int arrived = warps[i >> 5].n_arrived;
                const long generation = warps[i >> 5].generation;
                resume(fibers[i]);
                progress += fibers[i].done || warps[i >> 5].n_arrived != arrived || warps[i >> 5].generation != generation;
                n_left -= fibers[i].done;
            }
            n_idle = progress ? 0 : n_idle + 1;
            if (n_idle > 2) {
                fprintf(stderr, "threads of a warp wait for threads that do not come\n");
                abort();
            }
        }
    }
    free(shared);
}
}  // namespace emulation

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
template <class Value> static Value from_bits(unsigned long long bits) {
    Value value;
    __builtin_memcpy(&value, &bits, sizeof(Value));
    return value;
}
template <class Value> static unsigned long long to_bits(Value value) {
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(Value));
    return bits;
}
template <class Value> static Value __shfl_sync(unsigned, Value value, int lane) {
    return from_bits<Value>(emulation::exchange(to_bits(value))[lane & 31]);
}
template <class Value> static Value __shfl_xor_sync(unsigned, Value value, int mask) {
    return from_bits<Value>(emulation::exchange(to_bits(value))[(threadIdx.x & 31) ^ mask]);
}
template <class Value> static Value warp_sum(Value value) {
    const unsigned long long* values = emulation::exchange(to_bits(value));
    Value total = 0;
    for (int lane = 0; lane < 32; lane++) total += from_bits<Value>(values[lane]);
    return total;
}
template <class Value> static Value warp_max(Value value) {
    const unsigned long long* values = emulation::exchange(to_bits(value));
    Value largest = value;
    for (int lane = 0; lane < 32; lane++) largest = max(largest, from_bits<Value>(values[lane]));
    return largest;
}
#define EMULATED
static inline unsigned __ballot_sync(unsigned, int predicate) {
    const unsigned long long* values = emulation::exchange(predicate != 0);
    unsigned word = 0;
    for (int lane = 0; lane < 32; lane++) word |= unsigned(values[lane]) << lane;
    return word;
}
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline void __syncwarp() { emulation::exchange(0); }
static inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
static inline int __popc(unsigned word) { return __builtin_popcount(word); }
static inline int __ffsll(long long word) { return __builtin_ffsll(word); }
static inline int __ffs(int word) { return __builtin_ffs(word); }
template <class Value> static Value atomicAdd(Value* place, Value value) {
    Value before = *place;
    *place += value;
    return before;
}
template <class Value> static Value atomicOr(Value* place, Value value) {
    Value before = *place;
    *place |= value;
    return before;
}
