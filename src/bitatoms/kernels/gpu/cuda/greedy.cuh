// Greedy coding of a row: toggle the best atom while one gains. As kernels/cpu/gains.py and kernels/cpu/coding.py.
#pragma once
#include "rows.cuh"

// Of the bits that a toggle changed: the number that are wrong now less the number that are right.
__device__ __forceinline__ int wrong_minus_right(const Row& row) {
    int total = 0;
    for (int w = LANE; w < row.n_words; w += 32)
        total += 2 * __popcll(row.changed[w] & row.errors[w]) - __popcll(row.changed[w]);
    return warp_sum(total);
}

// Update the gains after a toggle of atom k, which the row uses now if it `adds`.
__device__ inline void next_gains(
    const Row& row, const Atoms& atoms, const Prices& prices, int k, bool complete, bool adds, int (&gains)[GAINS]
) {
    const int factor = COVERS ? 1 : 2;
    const int* wrong = OWN_COSTS && adds ? prices.added : prices.bits;
    if (complete && !OWN_COSTS) {
        // All bits of the atom as if they were right now and those that are wrong twice, or the reverse.
        const bool few_wrong = wrong_minus_right(row) <= 0;
        const int sign = few_wrong ? 1 : -1;
        const Word flipped = few_wrong ? 0 : ~Word(0);
        UNROLL
        for (int i = 0; i < GAINS; i++) gains[i] -= sign * atoms.overlaps[Int64(k) * 32 * GAINS + 32 * i + LANE];
        add_overlaps(
            [&](int w) { return row.changed[w] & (row.errors[w] ^ flipped); }, row.n_words, 2 * sign * factor, wrong,
            atoms, gains
        );
    } else {
        const int* right = OWN_COSTS && !adds ? prices.added : prices.bits;
        add_overlaps([&](int w) { return row.changed[w] & row.errors[w]; }, row.n_words, factor, wrong, atoms, gains);
        add_overlaps([&](int w) { return row.changed[w] & ~row.errors[w]; }, row.n_words, -factor, right, atoms, gains);
    }
}

// Toggle atom k and update the gains; return whether the row now uses it.
__device__ inline bool toggle_and_update(
    Row& row, const Atoms& atoms, const Prices& prices, int k, int (&gains)[GAINS]
) {
    bool adds;
    const bool complete = toggle(row, atoms, k, adds);
    next_gains(row, atoms, prices, k, complete, adds, gains);
    const int change = COVERS ? (adds ? -USED : USED) : (adds ? 2 : -2) * prices.use(k);
    UNROLL
    for (int i = 0; i < GAINS; i++)
        if (32 * i + LANE == k) gains[i] += change;
    return adds;
}

// The largest positive gain, or zero, and the lowest atom that has it.
__device__ __forceinline__ int best_gain(const int (&gains)[GAINS], int& best) {
    int largest = 0;
    UNROLL
    for (int k = 0; k < GAINS; k++) largest = max(largest, gains[k]);
    largest = warp_max(largest);
    int lowest = 32 * GAINS;
    UNROLL
    for (int k = GAINS - 1; k >= 0; k--)
        if (gains[k] == largest) lowest = 32 * k + LANE;
    best = largest > 0 ? warp_min(lowest) : -1;
    return largest;
}

// An atom, its gain and its weight, compared by gain per bit.
struct Ratio {
    int atom;
    int gain;
    int weight;

    __device__ __forceinline__ void take_better(int other, int other_gain, int other_weight) {
        if (other < 0) return;
        const Int64 own_product = Int64(gain) * other_weight, other_product = Int64(other_gain) * weight;
        if (atom < 0 || other_product > own_product || (other_product == own_product && other < atom)) {
            atom = other;
            gain = other_gain;
            weight = other_weight;
        }
    }
};

// The lowest atom with the largest gain per bit, of those with a positive gain; -1 if there is none.
__device__ inline int best_ratio(const int (&gains)[GAINS], const Atoms& atoms, int& gain) {
    Ratio best = {-1, 0, 1};
    UNROLL
    for (int k = 0; k < GAINS; k++)
        if (gains[k] > 0) best.take_better(32 * k + LANE, gains[k], atoms.weights[32 * k + LANE]);
    for (int step = 16; step > 0; step >>= 1) {
        const int atom = __shfl_xor_sync(ALL_LANES, best.atom, step);
        const int other_gain = __shfl_xor_sync(ALL_LANES, best.gain, step);
        const int other_weight = __shfl_xor_sync(ALL_LANES, best.weight, step);
        best.take_better(atom, other_gain, other_weight);
    }
    gain = best.gain;
    return best.atom;
}

// The gain of dropping atom k under OR: wrong minus right among the bits that only k covers.
__device__ inline int drop_gain(const Row& row, const Atoms& atoms, const Prices& prices, int k) {
    int total = 0;
    for (int w = LANE; w < row.n_words; w += 32) {
        const Word alone = atoms.words[Int64(k) * row.n_words + w] & row.covered[w] & ~row.twice[w];
        const Word wrong = alone & row.errors[w];
        if (PRICED) {
            const int* both = OWN_COSTS ? prices.mean : prices.bits;
            total += 2 * word_price(wrong, w, both) - word_price(alone, w, prices.bits);
        } else {
            total += 2 * __popcll(wrong) - __popcll(alone);
        }
    }
    return warp_sum(total) + prices.use(k);
}

// drops = the gain of dropping each used atom. Under XOR, toggling an atom in use drops it.
__device__ inline void find_drops(
    const Row& row, const Atoms& atoms, const Prices& prices, const int (&gains)[GAINS], int (&drops)[GAINS]
) {
    UNROLL
    for (int k = 0; k < GAINS; k++) drops[k] = COVERS ? NO_GAIN : gains[k];
    if (!COVERS) return;
    for (int c = 0; c < row.n_code_words; c++) {
        for (Word word = row.code[c]; word; word &= word - 1) {
            const int atom = 64 * c + lowest_bit(word), gain = drop_gain(row, atoms, prices, atom);
            UNROLL
            for (int k = 0; k < GAINS; k++)
                if (32 * k + LANE == atom) drops[k] = gain;
        }
    }
}

// The given toggle, or a better one of an atom in use.
__device__ inline int best_drop(
    const Row& row, const Atoms& atoms, const int (&drops)[GAINS], int best, int& gain
) {
    Ratio ratio = {best, gain, BY_RATIO && best >= 0 ? atoms.weights[best] : 1};
    for (int c = 0; c < row.n_code_words; c++) {
        for (Word word = row.code[c]; word; word &= word - 1) {
            const int atom = 64 * c + lowest_bit(word);
            int own = NO_GAIN;
            UNROLL
            for (int k = 0; k < GAINS; k++)
                if (32 * k + LANE == atom) own = drops[k];
            own = __shfl_sync(ALL_LANES, own, atom & 31);
            if (own > 0) ratio.take_better(atom, own, BY_RATIO ? atoms.weights[atom] : 1);
        }
    }
    gain = ratio.gain;
    return ratio.atom;
}

// trial = the gain of toggling each atom after dropping atom k, which the row uses.
__device__ inline void gains_without(
    const Row& row, const Atoms& atoms, const Prices& prices, int k, const int (&gains)[GAINS], int (&trial)[GAINS]
) {
    const Word* atom = atoms.words + Int64(k) * row.n_words;
    const int factor = COVERS ? 1 : 2;
    UNROLL
    for (int i = 0; i < GAINS; i++) trial[i] = gains[i];
    if (!COVERS && !UNKNOWN) {
        UNROLL
        for (int i = 0; i < GAINS; i++) trial[i] += atoms.overlaps[Int64(k) * 32 * GAINS + 32 * i + LANE];
        add_overlaps(
            [&](int w) { return atom[w] & row.errors[w]; }, row.n_words, -2 * factor, prices.bits, atoms, trial
        );
        return;
    }
    auto change = [&](int w) {
        return atom[w] & (COVERS ? row.covered[w] & ~row.twice[w] : ~row.unknown_word(w));
    };
    const int* added = OWN_COSTS ? prices.added : prices.bits;
    add_overlaps([&](int w) { return change(w) & row.errors[w]; }, row.n_words, -factor, added, atoms, trial);
    add_overlaps([&](int w) { return change(w) & ~row.errors[w]; }, row.n_words, factor, prices.bits, atoms, trial);
}

// The first used atom whose replacement gains, and the best replacement; -1 if there is none.
__device__ inline int best_swap(
    const Row& row, const Atoms& atoms, const Prices& prices, const int (&gains)[GAINS], const int (&drops)[GAINS],
    int& replacement
) {
    int trial[GAINS];
    for (int c = 0; c < row.n_code_words; c++) {
        for (Word word = row.code[c]; word; word &= word - 1) {
            const int k = 64 * c + lowest_bit(word);
            int gain = 0, best = 0;
            UNROLL
            for (int i = 0; i < GAINS; i++) {
                if (32 * i + LANE == k) {
                    gain = drops[i];
                } else if (32 * i + LANE < atoms.n_atoms) {
                    best = max(best, gains[i] + atoms.overlaps[Int64(k) * 32 * GAINS + 32 * i + LANE]);
                }
            }
            gain = __shfl_sync(ALL_LANES, gain, k & 31);
            // Without k, the gain of another atom rises by its overlap with k at most.
            if (warp_max(best) + gain <= 0) continue;
            gains_without(row, atoms, prices, k, gains, trial);
            UNROLL
            for (int i = 0; i < GAINS; i++)
                if (32 * i + LANE == k) trial[i] = NO_GAIN;
            best = best_gain(trial, replacement);
            if (best > 0 && best + gain > 0) return k;
        }
    }
    replacement = -1;
    return -1;
}

// Toggle atoms of a row, which is row i of those coded, while one gains.
__device__ inline void code_row(Row& row, Int64 i, const Atoms& atoms, const Rule& rule) {
    int gains[GAINS], drops[GAINS];
    int used = weight(row.code, row.n_code_words);
    int wrong = weight(row.errors, row.n_words);
    start_gains(row, i, atoms, rule.prices, gains);
    while (wrong > rule.residual_limit) {
        int k = -1, gain = 0, replacement = -1;
        if (used < rule.max_atoms) {
            if (BY_RATIO) {
                k = best_ratio(gains, atoms, gain);
            } else {
                gain = best_gain(gains, k);
            }
        }
        if (COVERS || used >= rule.max_atoms) {
            find_drops(row, atoms, rule.prices, gains, drops);
            k = best_drop(row, atoms, drops, k, gain);
        }
        if (k < 0 && PRICED && rule.swaps) {
            if (!COVERS) find_drops(row, atoms, rule.prices, gains, drops);
            k = best_swap(row, atoms, rule.prices, gains, drops, replacement);
        }
        if (k < 0) break;
        while (k >= 0) {  // twice for a swap
            used += toggle_and_update(row, atoms, rule.prices, k, gains) ? 1 : -1;
            k = replacement;
            replacement = -1;
        }
        wrong = weight(row.errors, row.n_words);
    }
}

// Drop the atoms of a row that add a one where none may be added; return how many.
__device__ inline int drop_forbidden(Row& row, const Atoms& atoms, const Prices& prices) {
    if (!OWN_COSTS || !prices.forbidden) return 0;
    int n_dropped = 0;
    for (int k = 0; k < atoms.n_atoms; k++) {
        bool adds;
        if (has_bit(row.code, k) && adds_forbidden(row, atoms, k, prices)) {
            toggle(row, atoms, k, adds);
            n_dropped++;
        }
        __syncwarp();
    }
    return n_dropped;
}
