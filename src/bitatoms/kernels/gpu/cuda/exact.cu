// Coding of rows by the best of all codes, for few atoms. As `code_rows_exactly` of kernels/cpu/exact.py.
//
// A code of p atoms is an integer below 2**p with atom 0 as its lowest bit. Its product is combined from two tables, one
// for its low and one for its high bits.
#include "rows.cuh"

#define CODE_BITS 16  // of a rank: the number of errors, then the code

__device__ __forceinline__ Word combine(Word one, Word other) {
    return COVERS ? one | other : one ^ other;
}

// The products of all codes of the low and of the high atoms.
struct Products {
    const Word* low;     // (words, low codes)
    const Word* high;    // (words, high codes)
    const Word* within;  // (words): the union of the low atoms
    int n_low;
    int n_high;

    __device__ __forceinline__ Word product(int w, int code) const {
        return combine(low[w * n_low + code % n_low], high[w * n_high + code / n_low]);
    }
};

// The number of errors that no code of the low atoms can remove from a row coded by high code h.
__device__ inline int least_errors(const Row& row, const Word* target, const Products& products, int h) {
    int count = 0;
    for (int w = 0; w < row.n_words; w++) {
        const Word fixed = products.high[w * products.n_high + h], within = products.within[w];
        const Word wrong = COVERS ? (fixed & ~target[w]) | (target[w] & ~fixed & ~within) : (target[w] ^ fixed) & ~within;
        count += __popcll(wrong & ~row.unknown_word(w));
    }
    return count;
}

__device__ inline int count_errors(const Row& row, const Word* target, const Products& products, int h, int c) {
    int count = 0;
    for (int w = 0; w < row.n_words; w++) {
        const Word product = combine(products.low[w * products.n_low + c], products.high[w * products.n_high + h]);
        count += __popcll((target[w] ^ product) & ~row.unknown_word(w));
    }
    return count;
}

// The code with the fewest errors: the given one unless another is strictly better, then the lowest.
__device__ inline int best_code(
    const Row& row, const Word* target, const Products& products, int code, int n_wrong, Int64 max_atoms
) {
    const Int64 first_rank = Int64(n_wrong) << CODE_BITS;
    Int64 least = first_rank;  // of all threads
    for (int first = 0; first < products.n_high; first += 32) {
        const int own_high = first + LANE;
        const int bound = own_high < products.n_high ? least_errors(row, target, products, own_high) : n_wrong;
        unsigned left = __ballot_sync(ALL_LANES, bound < int(least >> CODE_BITS));
        while (left) {
            const int h = first + __ffs(int(left)) - 1;
            left &= left - 1;
            Int64 rank = least;
            for (int c = LANE; c < products.n_low; c += 32) {
                const int candidate = h * products.n_low + c;
                const Int64 own = Int64(count_errors(row, target, products, h, c)) << CODE_BITS | candidate;
                if (own < rank && __popc(candidate) <= max_atoms) rank = own;
            }
            if (!__any_sync(ALL_LANES, rank < least)) continue;
            for (int step = 16; step > 0; step >>= 1) rank = min(rank, __shfl_xor_sync(ALL_LANES, rank, step));
            least = rank;
            left &= __ballot_sync(ALL_LANES, bound < int(least >> CODE_BITS));
        }
    }
    return least < first_rank ? int(least & ((1 << CODE_BITS) - 1)) : code;
}

// Set each stale row of n to the best of all codes. The numbers of changed code and error bits are added to `changes`.
extern "C" __global__ void code_rows_exactly(
    Word* errors, Word* codes, Word* covered, Word* twice, const Word* unknown, int n_words, const Word* atom_words,
    int n_atoms, const Word* low, const Word* high, const Word* within, int n_low, int n_high, Int64 max_atoms,
    Int64 residual_limit, unsigned char* stale, Int64 n, Word* changes
) {
    const Rows rows = {errors, codes, covered, twice, unknown, n_words, 1};
    const Atoms atoms = {atom_words, nullptr, nullptr, nullptr, n_atoms, nullptr};
    const Products products = {low, high, within, n_low, n_high};
    const int n_row = words_of_row(n_words, 1);
    DYNAMIC_SHARED(Word, memory);
    Word* own = memory + (threadIdx.x >> 5) * (n_row + n_words);
    Row row = row_in(own, n_words, 1);
    Word* target = own + n_row;
    Int64 codes_changed = 0, errors_changed = 0;
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        const bool is_stale = stale[j];
        __syncwarp();
        if (LANE == 0) stale[j] = 0;
        if (!is_stale) continue;
        load_row(rows, j, row);
        const int n_wrong = weight(row.errors, n_words);
        if (n_wrong <= residual_limit) continue;
        const int old_code = int(row.code[0]);
        for (int w = LANE; w < n_words; w += 32) target[w] = row.errors[w] ^ products.product(w, old_code);
        __syncwarp();
        const int code = best_code(row, target, products, old_code, n_wrong, max_atoms);
        if (code == old_code) continue;
        if (LANE == 0) row.code[0] = code;
        int n_changed = 0;
        for (int w = LANE; w < n_words; w += 32) {
            const Word wrong = (target[w] ^ products.product(w, code)) & ~row.unknown_word(w);
            n_changed += __popcll(row.errors[w] ^ wrong);
            row.errors[w] = wrong;
        }
        __syncwarp();
        if (COVERS) cover(row, atoms);
        store_row(row, rows, j);
        codes_changed += __popc(unsigned(code ^ old_code));
        errors_changed += warp_sum(n_changed);
    }
    add_changes(codes_changed, errors_changed, changes);
}
