// Codes from information sets, under XOR and at prices. As `code_from_columns` of kernels/cpu/gf2.py.
#include "rows.cuh"

#define NO_COST 0x7fffffffffffffffLL

// Information sets: the columns that determine the code of a row, and the atoms reduced to them, for each draw.
struct Draws {
    const Int64* pivots;   // (draws, rank): the columns
    const Word* reduced;   // (draws, words, rank): the reduced atoms, transposed
    const Word* sums;      // (draws, code words, rank): the atoms that each is the sum of, transposed
    const Word* products;  // (draws, bytes, 256, words): sums of eight reduced atoms, by the byte that selects them
    const Word* codes;     // (draws, bytes, 256, code words): the same sums of `sums`
    int rank;
    int n_words;
    int n_code_words;

    __device__ __forceinline__ const Word* reduced_of(int draw) const {
        return reduced + Int64(draw) * n_words * rank;
    }

    __device__ __forceinline__ const Word* sums_of(int draw) const {
        return sums + Int64(draw) * n_code_words * rank;
    }
};

// The bits that tell a row coded for an error in pivot column i, or in none for i = -1, from one coded for none.
__device__ __forceinline__ Word changed_word(const Word* words, int w, int rank, int i) {
    return i >= 0 ? words[Int64(w) * rank + i] : 0;
}

// bytes[g] = the bits of a row in the pivot columns from 8 g on, at most eight.
__device__ inline void pivot_bytes(const Word* target, const Int64* pivots, int rank, unsigned* bytes) {
    for (int first = 0; first < rank; first += 32) {
        bool is_one = false;
        if (first + LANE < rank) is_one = has_bit(target, int(pivots[first + LANE]));
        const unsigned word = __ballot_sync(ALL_LANES, is_one);
        if (LANE < 4) bytes[first / 8 + LANE] = word >> 8 * LANE & 255;
    }
    __syncwarp();
}

// out[w] ^= the words of the table that the bytes select.
__device__ inline void add_selected(const Word* table, const unsigned* bytes, int n_bytes, int n_words, Word* out) {
    for (int w = LANE; w < n_words; w += 32) {
        Word total = out[w];
#pragma unroll 4
        for (int g = 0; g < n_bytes; g++) total ^= table[Int64(256 * g + bytes[g]) * n_words + w];
        out[w] = total;
    }
    __syncwarp();
}

// Whether the row that is coded for an error in pivot column i has at most this many errors; all threads wait for each
// other. `exists`: the thread has such a column, or -1.
__device__ inline bool has_few_errors(
    const Row& row, const Word* base, const Word* reduced, int rank, int i, bool exists, int most
) {
    int count = exists ? 0 : most + 1;
    for (int w = 0; w < row.n_words && __any_sync(ALL_LANES, count <= most); w++)
        if (exists)
            count += __popcll((base[w] ^ changed_word(reduced, w, rank, i)) & ~row.unknown_word(w));
    return count <= most;
}

// The cost of the row that is coded for an error in pivot column i, or NO_COST if it uses too many atoms.
__device__ inline Int64 cost_of(
    const Row& row, const Word* base, const Word* base_code, const Draws& draws, int draw, int i, const Rule& rule
) {
    int n_used = 0;
    Int64 total = 0;
    const Word *reduced = draws.reduced_of(draw), *sums = draws.sums_of(draw);
    for (int c = 0; c < row.n_code_words; c++) {
        const Word code = base_code[c] ^ changed_word(sums, c, draws.rank, i);
        n_used += __popcll(code);
        total += word_price(code, c, rule.prices.uses);
    }
    if (n_used > rule.max_atoms) return NO_COST;
    for (int w = 0; w < row.n_words; w++) {
        const Word errors = (base[w] ^ changed_word(reduced, w, draws.rank, i)) & ~row.unknown_word(w);
        total += word_price(errors, w, rule.prices.bits);
    }
    return total;
}

// The least of these costs, if it is below the given one, and the lowest column that has it; -2 if there is none.
__device__ inline int best_column(
    const Row& row, const Word* base, const Word* base_code, const Draws& draws, int draw, const Rule& rule, int most,
    Int64& cost
) {
    int best = -2;
    Int64 least = cost;
    for (int first = -1; first < draws.rank; first += 32) {
        const int i = first + LANE;
        if (!has_few_errors(row, base, draws.reduced_of(draw), draws.rank, i, i < draws.rank, most)) continue;
        const Int64 own = cost_of(row, base, base_code, draws, draw, i, rule);
        if (own < least) {
            least = own;
            best = i;
        }
    }
    if (!__any_sync(ALL_LANES, best > -2)) return -2;
    for (int step = 16; step > 0; step >>= 1) {
        const Int64 other = __shfl_xor_sync(ALL_LANES, least, step);
        const int column = __shfl_xor_sync(ALL_LANES, best, step);
        if (column > -2 && (best == -2 || other < least || (other == least && column < best))) {
            least = other;
            best = column;
        }
    }
    cost = least;
    return best;
}

// Code the n rows from the columns of each draw, in order, and keep a code that costs less than the current one.
//
// A code follows from the bits of a row in these columns, if there are no errors in them, or one. Codes with over
// `slack` more errors than the current one are passed over. `targets` are the rows less the bias.
extern "C" __global__ void code_from_columns(
    Word* errors, Word* codes, const Word* unknown, int n_words, int n_code_words, const Word* targets,
    const int* bits, const int* uses, Int64 max_atoms, const Int64* pivots, const Word* reduced, const Word* sums,
    const Word* products, const Word* product_codes, int rank, int n_draws, int slack, Int64 n
) {
    const Rows rows = {errors, codes, nullptr, nullptr, unknown, n_words, n_code_words};
    const Rule rule = {max_atoms, 0, 0, {bits, uses, nullptr, nullptr, nullptr, -1}};
    const Draws draws = {pivots, reduced, sums, products, product_codes, rank, n_words, n_code_words};
    const int n_row = words_of_row(n_words, n_code_words), n_bytes = (rank + 7) / 8;
    DYNAMIC_SHARED(Word, memory);
    Word* own = memory + (threadIdx.x >> 5) * (n_row + 2 * n_words + n_code_words + (rank + 31) / 32 * 2);
    Row row = row_in(own, n_words, n_code_words);
    Word *target = own + n_row, *base = target + n_words, *base_code = base + n_words;
    unsigned* bytes = (unsigned*)(base_code + n_code_words);
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        load_row(rows, j, row);
        Int64 cost = row_price(row, rule.prices);
        bool is_new = false;
        copy_words(targets + j * n_words, target, n_words);
        for (int draw = 0; draw < n_draws && cost > 0; draw++) {
            const int most = weight(row.errors, n_words) + slack;
            pivot_bytes(target, pivots + Int64(draw) * rank, rank, bytes);
            copy_words(target, base, n_words);
            for (int c = LANE; c < n_code_words; c += 32) base_code[c] = 0;
            __syncwarp();
            const Int64 first = Int64(draw) * n_bytes * 256;
            add_selected(products + first * n_words, bytes, n_bytes, n_words, base);
            add_selected(product_codes + first * n_code_words, bytes, n_bytes, n_code_words, base_code);
            const int i = best_column(row, base, base_code, draws, draw, rule, most, cost);
            if (i == -2) continue;
            is_new = true;
            for (int w = LANE; w < n_words; w += 32) {
                const Word change = changed_word(draws.reduced_of(draw), w, rank, i);
                row.errors[w] = (base[w] ^ change) & ~row.unknown_word(w);
            }
            for (int c = LANE; c < n_code_words; c += 32)
                row.code[c] = base_code[c] ^ changed_word(draws.sums_of(draw), c, rank, i);
            __syncwarp();
        }
        if (is_new) store_row(row, rows, j);
    }
}
