// Beam coding of rows under XOR, at prices. As kernels/cpu/beam.py, with one more macro:
//   ENTRIES    candidates per thread: 32 ENTRIES is at least the width of the beam
//
// The candidates for the next level are in registers, sorted. The partial codes of two successive levels are in a work
// memory that each warp has, because their gains take most of it.
#include "greedy.cuh"

#define ROTATION 23  // a fingerprint is the XOR of the words of a row, word w rotated by this many bits times w
#define NO_SCORE (-0x7fffffffffffffffLL - 1)

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

// The best candidates so far, best first, with different fingerprints; candidate 32 e + LANE is entry e of the thread.
struct Candidates {
    Int64 score[ENTRIES];
    Word mark[ENTRIES];  // fingerprint of its errors
    int step[ENTRIES];   // the partial code that it extends times 32 GAINS, plus the atom that it adds
    int count;
    int width;
    Int64 worst;  // a candidate must score more than this

    __device__ __forceinline__ void clear() {
        count = 0;
        worst = NO_SCORE;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            score[e] = NO_SCORE;
            mark[e] = 0;
            step[e] = 0;
        }
    }

    // Insert a candidate behind those with the same score, unless one with the same fingerprint scores as much.
    __device__ __forceinline__ void insert(Int64 new_score, Word new_mark, int new_step) {
        int index = 0, last = min(count, width - 1);  // candidates index..last - 1 move
        bool replaces = false;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const bool exists = 32 * e + LANE < count;
            const unsigned ahead = __ballot_sync(ALL_LANES, exists && score[e] >= new_score);
            const unsigned same = __ballot_sync(ALL_LANES, exists && mark[e] == new_mark);
            if (same & ahead) return;
            index += __popc(ahead);
            if (same) {  // the same errors at a lower cost
                last = 32 * e + __ffs(int(same)) - 1;
                replaces = true;
            }
        }
        Int64 score_before = 0;
        Word mark_before = 0;
        int step_before = 0;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++) {
            const int i = 32 * e + LANE;
            const Int64 rotated_score = __shfl_sync(ALL_LANES, score[e], LANE + 31);
            const Word rotated_mark = __shfl_sync(ALL_LANES, mark[e], LANE + 31);
            const int rotated_step = __shfl_sync(ALL_LANES, step[e], LANE + 31);
            if (i == index) {
                score[e] = new_score;
                mark[e] = new_mark;
                step[e] = new_step;
            } else if (i > index && i <= last) {
                score[e] = LANE ? rotated_score : score_before;
                mark[e] = LANE ? rotated_mark : mark_before;
                step[e] = LANE ? rotated_step : step_before;
            }
            score_before = rotated_score;
            mark_before = rotated_mark;
            step_before = rotated_step;
        }
        if (!replaces) count = min(count + 1, width);
        if (count < width) return;
#pragma unroll
        for (int e = 0; e < ENTRIES; e++)
            if (e == (width - 1) >> 5) worst = __shfl_sync(ALL_LANES, score[e], (width - 1) & 31);
    }
};

// The partial codes of two levels.
struct Beam {
    int* gains;    // (2, width, 32 GAINS)
    Word* errors;  // (2, width, words)
    Word* codes;   // (2, width, code words)
    Int64* value;  // (width): the total gain of those of the last level
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

// Collect the best candidates that add one atom to the partial codes on a side.
__device__ inline void extend_all(
    const Beam& beam, int side, int count, int n_atoms, const Word* atom_marks, Candidates& best
) {
    best.clear();
    for (int s = 0; s < count; s++) {
        const int* gains = beam.gains_of(side, s);
        const Word* code = beam.code_of(side, s);
        const Int64 value = beam.value[s];
        const Word mark = beam.marks[s];
        int next_gain = gains[LANE];
        for (int first = 0; first < n_atoms; first += 32) {
            const int atom = first + LANE;
            const Int64 score = value + next_gain;
            if (first + 32 < n_atoms) next_gain = gains[atom + 32];
            const bool is_used = code[first >> 6] >> (atom & 63) & 1;
            const bool is_open = atom < n_atoms && !is_used && score > best.worst;
            unsigned left = __ballot_sync(ALL_LANES, is_open);
            if (!left) continue;
            const Word own_mark = is_open ? mark ^ atom_marks[atom] : 0;
            while (left) {
                const int lane = __ffs(int(left)) - 1;
                left &= left - 1;
                best.insert(
                    __shfl_sync(ALL_LANES, score, lane), __shfl_sync(ALL_LANES, own_mark, lane),
                    s * (32 * GAINS) + first + lane
                );
                left &= __ballot_sync(ALL_LANES, score > best.worst);
            }
        }
    }
}

// Compute partial code i on a side from the one on the other side that it extends.
__device__ inline void apply(const Beam& beam, int side, int i, Row& row, const Atoms& atoms, const Prices& prices) {
    const int s = beam.steps[i] / (32 * GAINS), k = beam.steps[i] % (32 * GAINS);
    int gains[GAINS];
    const int* old_gains = beam.gains_of(1 - side, s);
#pragma unroll
    for (int a = 0; a < GAINS; a++) gains[a] = old_gains[32 * a + LANE];
    copy_words(beam.errors_of(1 - side, s), row.errors, row.n_words);
    copy_words(beam.code_of(1 - side, s), row.code, row.n_code_words);
    bool adds;
    const bool complete = toggle(row, atoms, k, adds);
    next_gains(row, atoms, prices, k, complete, adds, gains);
    int* new_gains = beam.gains_of(side, i);
#pragma unroll
    for (int a = 0; a < GAINS; a++) new_gains[32 * a + LANE] = gains[a];
    copy_words(row.errors, beam.errors_of(side, i), row.n_words);
    copy_words(row.code, beam.code_of(side, i), row.n_code_words);
}

// Find the best code of a row, which uses no atom; return its gain, and set its code and errors.
__device__ inline Int64 search(
    Row& row, const Atoms& atoms, const Rule& rule, const Word* atom_marks, int patience, const Beam& beam,
    Word* best_code, Word* best_errors
) {
    int gains[GAINS];
    first_gains(row, 0, atoms, rule.prices, gains);
    int* first = beam.gains_of(0, 0);
#pragma unroll
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
    Int64 best = 0;
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
            const int i = 32 * e + LANE;
            if (i < count) {
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
extern "C" __global__ void beam_rows(
    Word* errors, Word* codes, const Word* unknown, int n_words, int n_code_words, const Word* atom_words,
    const int* weights, const int* overlaps, const unsigned* columns, int n_atoms, const int* bits, const int* uses,
    Int64 max_atoms, Int64 residual_limit, const Int64* indices, Int64 n, const Word* atom_marks, int width,
    int patience, Word* work, Word* changes
) {
    const Rows rows = {errors, codes, nullptr, nullptr, unknown, n_words, n_code_words};
    const Atoms atoms = {atom_words, weights, overlaps, columns, n_atoms, nullptr};
    const Rule rule = {max_atoms, residual_limit, 0, {bits, uses, nullptr, nullptr, nullptr, -1}};
    DYNAMIC_SHARED(Word, memory);
    const int n_row = words_of_row(n_words, n_code_words), n_steps = (width + 1) / 2;
    Word* own = memory + (threadIdx.x >> 5) * (n_row + n_words + n_code_words + 2 * width + n_steps);
    Row row = row_in(own, n_words, n_code_words);
    Word *best_errors = own + n_row, *best_code = best_errors + n_words;
    Beam beam;
    beam.width = width;
    beam.n_words = n_words;
    beam.n_code_words = n_code_words;
    beam.value = (Int64*)(best_code + n_code_words);
    beam.marks = (Word*)(beam.value + width);
    beam.steps = (int*)(beam.marks + width);
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
    if (LANE == 0) {
        atomicAdd(changes, Word(codes_changed));
        atomicAdd(changes + 1, Word(errors_changed));
    }
}
