// Kernels that code rows, or rate atoms by what they would gain. As kernels/cpu/coding.py.
#include "greedy.cuh"

#define PREPARE \
    STATE(shares) \
    DYNAMIC_SHARED(Word, memory); \
    const int n_row = words_of_row(n_words, n_code_words); \
    Word* own = memory + (threadIdx.x >> 5) * (n_row + n_words + n_code_words); \
    Row row = row_in(own, n_words, n_code_words); \
    Word *old_errors = own + n_row, *old_code = old_errors + n_words; \
    (void)old_errors; (void)old_code;

// Code rows from their current codes.
//
// `indices` lists the rows; if it is null, they are the first n, and only those that are stale if `stale` is not null.
// The numbers of changed code and error bits are added to `changes`.
extern "C" __global__ void code_rows(
    ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, const Int64* indices, unsigned char* stale, Int64 n, Word* changes
) {
    PREPARE
    Int64 codes_changed = 0, errors_changed = 0;
    for (Int64 i = WARP; i < n; i += N_WARPS) {
        const Int64 j = indices ? indices[i] : i;
        if (stale) {
            const bool is_stale = stale[j];
            __syncwarp();
            if (LANE == 0) stale[j] = 0;
            if (!is_stale) continue;
        }
        load_row(rows, j, row);
        const int n_dropped = drop_forbidden(row, atoms, rule.prices);
        codes_changed += n_dropped;
        int n_bits = 0;
        if (weight(row.errors, n_words) > rule.residual_limit) {
            copy_words(row.errors, old_errors, n_words);
            copy_words(row.code, old_code, n_code_words);
            code_row(row, i, atoms, rule);
            n_bits = distance(row.code, old_code, n_code_words);
            codes_changed += n_bits;
            errors_changed += distance(row.errors, old_errors, n_words);
        }
        if (n_dropped + n_bits) store_row(row, rows, j);
    }
    add_changes(codes_changed, errors_changed, changes);
}

// Add 1 to changes[i] where bit i became one, -1 where it became zero.
__device__ inline void count_changes(const Word* words, const Word* before, int n_words, Word* changes) {
    for (int w = LANE; w < n_words; w += 32)
        for (Word word = words[w] ^ before[w]; word; word &= word - 1) {
            const int i = lowest_bit(word);
            atomicAdd(changes + 64 * w + i, words[w] >> i & 1 ? Word(1) : ~Word(0));
        }
}

// Count what changes if row indices[i] is coded without atom tested[tests[i]]; the rows are left as they are.
extern "C" __global__ void code_without(
    ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, const Int64* indices, const Int64* tests, const Int64* tested,
    Int64 n, int n_features, Word* wrong_changes, Word* added_changes, Word* use_changes
) {
    PREPARE
    for (Int64 i = WARP; i < n; i += N_WARPS) {
        const Int64 test = tests[i];
        load_row(rows, indices[i], row);
        copy_words(row.errors, old_errors, n_words);
        copy_words(row.code, old_code, n_code_words);
        rule.prices.refused = int(tested[test]);
        if (added_changes) {
            for (int w = LANE; w < n_words; w += 32)
                for (Word word = row.errors[w] & row.covered[w]; word; word &= word - 1)
                    atomicAdd(added_changes + test * n_features + 64 * w + lowest_bit(word), ~Word(0));
            __syncwarp();
        }
        code_row(row, i, atoms, rule);
        count_changes(row.code, old_code, n_code_words, use_changes + test * n_atoms);
        count_changes(row.errors, old_errors, n_words, wrong_changes + test * n_features);
        if (added_changes)
            for (int w = LANE; w < n_words; w += 32)
                for (Word word = row.errors[w] & row.covered[w]; word; word &= word - 1)
                    atomicAdd(added_changes + test * n_features + 64 * w + lowest_bit(word), Word(1));
    }
}

// offers[j] = the atoms each of which would gain, added to row j alone: 32 GAINS bits.
extern "C" __global__ void offer_atoms(
    ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, Int64 n, unsigned* offers
) {
    PREPARE
    int gains[GAINS];
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        load_row(rows, j, row);
        first_gains(row, j, atoms, rule.prices, gains);
        UNROLL
        for (int k = 0; k < GAINS; k++) {
            const int atom = 32 * k + LANE;
            bool gaining = atom < n_atoms && gains[k] > 0;
            if (OWN_COSTS && gaining && forbidden) gaining = !adds_forbidden(row, atoms, atom, rule.prices);
            const unsigned word = __ballot_sync(ALL_LANES, gaining);
            if (LANE == 0) offers[j * GAINS + k] = word;
        }
    }
}

// totals[k] += the errors that atom k, used where it gains, would remove.
extern "C" __global__ void rate_atoms(
    ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, Int64 n, Word* totals
) {
    PREPARE
    int gains[GAINS];
    Int64 sums[GAINS];
    UNROLL
    for (int k = 0; k < GAINS; k++) sums[k] = 0;
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        load_row(rows, j, row);
        first_gains(row, j, atoms, rule.prices, gains);
        UNROLL
        for (int k = 0; k < GAINS; k++) sums[k] += max(gains[k], 0);
    }
    UNROLL
    for (int k = 0; k < GAINS; k++)
        if (32 * k + LANE < n_atoms) atomicAdd(totals + 32 * k + LANE, Word(sums[k]));
}

// nearest[j] = the lowest pattern that, alone, lowers the cost of row j most, or -1. The atoms are the patterns.
extern "C" __global__ void find_nearest(
    ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, Int64 n, Int64* nearest
) {
    PREPARE
    int gains[GAINS];
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        load_row(rows, j, row);
        int best = -1;
        if (weight(row.errors, n_words) > residual_limit) {
            first_gains(row, j, atoms, rule.prices, gains);
            best_gain(gains, best);
        }
        if (LANE == 0) nearest[j] = best;
    }
}

// costs[j] = the cost of the errors of row j and of the atoms it uses.
extern "C" __global__ void price_rows(ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, Int64 n, Int64* costs) {
    PREPARE
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        load_row(rows, j, row);
        const Int64 cost = row_price(row, rule.prices);
        if (LANE == 0) costs[j] = cost;
    }
}
