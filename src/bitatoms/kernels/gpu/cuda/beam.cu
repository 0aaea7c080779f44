// Beam coding of rows under XOR, at prices. As kernels/cpu/beam.py, with two more macros:
//   ENTRIES      candidates per thread: 32 ENTRIES is at least the width of the beam
//   WIDE_SCORES  1 if total gains may need more than 32 bits
//
// The candidates for the next level are in registers. The partial codes of two successive levels are in a work memory
// that each warp has, because their gains take most of it; in shared memory they are not faster.
#include "greedy.cuh"

#define ROTATION 23  // a fingerprint is the XOR of the words of a row, word w rotated by this many bits times w

// With few atoms per thread, registers are limited so that more warps run at a time.
#define LIMITS __launch_bounds__(128, GAINS <= 4 ? 8 : GAINS <= 16 ? 4 : 1)

#if WIDE_SCORES
typedef Int64 Score;
#define LEAST_SCORE (-0x7fffffffffffffffLL - 1)
#else
typedef int Score;
#define LEAST_SCORE (-0x7fffffff - 1)
#endif
#define LARGEST_SCORE (-(LEAST_SCORE + 1))

// A hash of a row; the fingerprint of the XOR of two rows is the XOR of their fingerprints.
__device__ inline Word fingerprint(const Word* words, int n_words) {
    Word total = 0;
    for (int w = LANE; w < n_words; w += 32) {
        const int rotation = ROTATION * w & 63;
        total ^= words[w] << rotation | words[w] >> 1 >> (63 - rotation);
    }
    for (int step = 16; step > 0; step >>= 1) total ^= __shfl_xor_sync(ALL_LANES, total, step);
    return total;
}

// The best candidates so far, in no order, with different fingerprints; candidate 32 e + LANE is entry e of the thread.
// Of two that score the same, the one that comes first in `step` is better.
struct Candidates {
    Score score[ENTRIES];
    Word mark[ENTRIES];  // fingerprint of its errors
    int step[ENTRIES];   // the partial code that it extends times 32 GAINS, plus the atom that it adds
    int count;
    int width;
    Score worst;     // a candidate must score more than this
    int worst_step;  // of the candidate that is replaced next, once there are enough

    __device__ __forceinline__ void clear() {
        count = 0;
        worst = LEAST_SCORE;
        worst_step = -1;
    }

    __device__ __forceinline__ bool exists(int e) const {
        return 32 * e + LANE < count;
    }

    // Insert a candidate that scores more than the worst, unless one with the same fingerprint scores as much. Of the
    // candidates so far that score the same, none comes later in `step`.
    __device__ __forceinline__ void insert(Score new_score, Word new_mark, int new_step) {
        bool is_known = false;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) is_known |= exists(e) && mark[e] == new_mark;
        is_known = __any_sync(ALL_LANES, is_known);
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const bool is_place = is_known       ? exists(e) && mark[e] == new_mark && score[e] < new_score
                                  : count < width ? 32 * e + LANE == count
                                                  : exists(e) && step[e] == worst_step;
            if (is_place) {
                score[e] = new_score;
                mark[e] = new_mark;
                step[e] = new_step;
            }
        }
        if (!is_known) count = min(count + 1, width);
        if (count == width) find_worst();
    }

    __device__ __forceinline__ void find_worst() {
        worst = LARGEST_SCORE;
        worst_step = -1;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++)
            if (exists(e)) worst = min(worst, score[e]);
        worst = -warp_max(-worst);
#pragma unroll
        for (int e = 0; e < ENTRIES; e++)
            if (exists(e) && score[e] == worst) worst_step = max(worst_step, step[e]);
        worst_step = warp_max(worst_step);
    }

    // The number of candidates that are better than entry e of the thread.
    __device__ __forceinline__ int rank(int e) const {
        int better = 0;
#pragma unroll
        for (int other = 0; other < ENTRIES; other++) {
            for (int lane = 0; lane < min(32, count - 32 * other); lane++) {
                const Score its_score = __shfl_sync(ALL_LANES, score[other], lane);
                const int its_step = __shfl_sync(ALL_LANES, step[other], lane);
                better += its_score > score[e] || (its_score == score[e] && its_step < step[e]);
            }
        }
        return better;
    }
};

// The partial codes of two levels.
struct Beam {
    int* gains;    // (2, width, 32 GAINS)
    Word* errors;  // (2, width, words)
    Word* codes;   // (2, width, code words)
    Score* value;  // (width): the total gain of those of the last level, best first
    Word* marks;   // (width): the fingerprints of their errors
    int* steps;    // (width): as `Candidates::step`
    int width;
    int n_words;
    int n_code_words;

    __device__ __forceinline__ int* gains_of(int side, int i) const {
        return gains + Int64(side * width + i) * (32 * GAINS);
    }

    __device__ __forceinline__ Word* errors_of(int side, int i) const {
        return errors + Int64(side * width + i) * n_words;
    }

    __device__ __forceinline__ Word* code_of(int side, int i) const {
        return codes + Int64(side * width + i) * n_code_words;
    }
};

// The best of the candidates that extend a partial code, and the lowest atom that it adds.
__device__ __forceinline__ Score best_score(const Score (&scores)[GAINS], int& best) {
    Score largest = scores[0];
    int lowest = LANE;
    UNROLL
    for (int a = 1; a < GAINS; a++) {
        if (scores[a] > largest) {
            largest = scores[a];
            lowest = 32 * a + LANE;
        }
    }
    const Score top = warp_max(largest);
    best = warp_min(largest == top ? lowest : 32 * GAINS);
    return top;
}

// Collect the best candidates that add one atom to the partial codes on a side: from each of them the best first, until
// one is not good enough.
__device__ inline void extend_all(
    const Beam& beam, int side, int count, int n_atoms, const Word* atom_marks, Candidates& best
) {
    best.clear();
    for (int s = 0; s < count; s++) {
        const int* gains = beam.gains_of(side, s);
        const Word* code = beam.code_of(side, s);
        Score scores[GAINS];
        UNROLL
        for (int a = 0; a < GAINS; a++) {
            const int atom = 32 * a + LANE;
            const bool is_open = atom < n_atoms && !has_bit(code, atom);
            scores[a] = is_open ? beam.value[s] + gains[atom] : LEAST_SCORE;
        }
        int k;
        for (Score top = best_score(scores, k); top > best.worst; top = best_score(scores, k)) {
            best.insert(top, beam.marks[s] ^ atom_marks[k], s * (32 * GAINS) + k);
            UNROLL
            for (int a = 0; a < GAINS; a++)
                if (32 * a + LANE == k) scores[a] = LEAST_SCORE;
        }
    }
}

// Compute partial code i on a side from the one on the other side that it extends; `changed` is work memory.
__device__ inline void apply(
    const Beam& beam, int side, int i, const Row& row, const Atoms& atoms, const Prices& prices
) {
    const int s = beam.steps[i] / (32 * GAINS), k = beam.steps[i] % (32 * GAINS);
    int gains[GAINS];
    const int* old_gains = beam.gains_of(1 - side, s);
    UNROLL
    for (int a = 0; a < GAINS; a++) gains[a] = old_gains[32 * a + LANE];
    Row next = row;
    next.errors = beam.errors_of(side, i);
    next.code = beam.code_of(side, i);
    copy_words(beam.errors_of(1 - side, s), next.errors, row.n_words);
    copy_words(beam.code_of(1 - side, s), next.code, row.n_code_words);
    bool adds;
    const bool complete = toggle(next, atoms, k, adds);
    next_gains(next, atoms, prices, k, complete, adds, gains);
    int* new_gains = beam.gains_of(side, i);
    UNROLL
    for (int a = 0; a < GAINS; a++) new_gains[32 * a + LANE] = gains[a];
    __syncwarp();
}

// Find the best code of a row, which uses no atom; return its gain, and set its code and errors.
__device__ inline Int64 search(
    Row& row, const Atoms& atoms, const Rule& rule, const Word* atom_marks, int patience, const Beam& beam,
    Word* best_code, Word* best_errors
) {
    int gains[GAINS];
    first_gains(row, 0, atoms, rule.prices, gains);
    int* first = beam.gains_of(0, 0);
    UNROLL
    for (int a = 0; a < GAINS; a++) first[32 * a + LANE] = gains[a];
    const Word mark = fingerprint(row.errors, row.n_words);
    if (LANE == 0) {
        beam.value[0] = 0;
        beam.marks[0] = mark;
    }
    copy_words(row.errors, beam.errors_of(0, 0), row.n_words);
    copy_words(row.code, beam.code_of(0, 0), row.n_code_words);
    copy_words(row.errors, best_errors, row.n_words);
    copy_words(row.code, best_code, row.n_code_words);
    Score best = 0;
    int side = 0, count = 1, idle = 0;
    Candidates candidates;
    candidates.width = beam.width;
    for (int level = 0; idle < patience && level < rule.max_atoms; level++) {
        extend_all(beam, side, count, atoms.n_atoms, atom_marks, candidates);
        count = candidates.count;
        side = 1 - side;
        __syncwarp();
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int i = candidates.rank(e);
            if (candidates.exists(e)) {
                beam.value[i] = candidates.score[e];
                beam.marks[i] = candidates.mark[e];
                beam.steps[i] = candidates.step[e];
            }
        }
        __syncwarp();
        idle++;
        const bool is_better = count > 0 && beam.value[0] > best;
        if (count == 0 || (idle == patience && !is_better)) break;
        for (int i = 0; i < count; i++) apply(beam, side, i, row, atoms, rule.prices);
        if (is_better) {
            best = beam.value[0];
            idle = 0;
            copy_words(beam.code_of(side, 0), best_code, row.n_code_words);
            copy_words(beam.errors_of(side, 0), best_errors, row.n_words);
        }
    }
    return best;
}

// Beam-code the n rows with these indices, and keep the new code where it costs less than the current one.
//
// `atom_marks` are the fingerprints of the atoms. A row is done after `patience` levels without a better code. `work`
// has 2 width (16 GAINS + words + code words) words per warp. The numbers of changed code and error bits are added to
// `changes`.
extern "C" __global__ void LIMITS beam_rows(
    ROWS_ARGUMENTS, ATOMS_ARGUMENTS, RULE_ARGUMENTS, const Int64* indices, Int64 n, const Word* atom_marks, int width,
    int patience, Word* work, Word* changes
) {
    STATE(nullptr)
    DYNAMIC_SHARED(Word, memory);
    const int n_row = words_of_row(n_words, n_code_words), n_steps = (width + 1) / 2;
    Word* own = memory + (threadIdx.x >> 5) * (n_row + n_words + n_code_words + 2 * width + n_steps);
    Row row = row_in(own, n_words, n_code_words);
    Word *best_errors = own + n_row, *best_code = best_errors + n_words;
    Beam beam;
    beam.width = width;
    beam.n_words = n_words;
    beam.n_code_words = n_code_words;
    beam.marks = best_code + n_code_words;
    beam.value = (Score*)(beam.marks + width);
    beam.steps = (int*)(beam.marks + 2 * width);
    Word* first = work + Int64(WARP) * 2 * width * (16 * GAINS + n_words + n_code_words);
    beam.gains = (int*)first;
    beam.errors = first + 2 * width * 16 * GAINS;
    beam.codes = beam.errors + 2 * width * n_words;
    Int64 codes_changed = 0, errors_changed = 0;
    for (Int64 i = WARP; i < n; i += N_WARPS) {
        const Int64 j = indices[i];
        load_row(rows, j, row);
        if (weight(row.errors, n_words) <= rule.residual_limit) continue;
        const Int64 before = row_price(row, rule.prices);
        drop_all(row, atoms);
        const Int64 without = row_price(row, rule.prices);
        const Int64 gain = search(row, atoms, rule, atom_marks, patience, beam, best_code, best_errors);
        if (without - gain >= before) continue;
        Word *code = codes + j * n_code_words, *wrong = errors + j * n_words;
        codes_changed += distance(best_code, code, n_code_words);
        errors_changed += distance(best_errors, wrong, n_words);
        copy_words(best_code, code, n_code_words);
        copy_words(best_errors, wrong, n_words);
    }
    add_changes(codes_changed, errors_changed, changes);
}
