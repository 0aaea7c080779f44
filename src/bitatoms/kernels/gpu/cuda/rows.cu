// Kernels on rows and codes as a whole: products, cover, transposes, sums. As kernels/cpu/words.py and packing.py.
#include "warp.cuh"

#define THREAD (Int64(blockIdx.x) * blockDim.x + threadIdx.x)
#define N_THREADS (Int64(gridDim.x) * blockDim.x)

// errors ^= the products of codes and atoms, except in unknown cells; which bits are covered once and twice. Either may
// be null.
extern "C" __global__ void multiply(
    const Word* codes, const Word* atoms, const Word* unknown, Int64 n, int n_words, int n_code_words, Word* errors,
    Word* covered, Word* twice
) {
    for (Int64 i = THREAD; i < n * n_words; i += N_THREADS) {
        const Int64 j = i / n_words;
        const int w = int(i - j * n_words);
        const Word hidden = UNKNOWN ? unknown[i] : 0;
        Word product = 0, once = hidden, several = hidden;
        for (int c = 0; c < n_code_words; c++)
            for (Word word = codes[j * n_code_words + c]; word; word &= word - 1) {
                const Word atom = atoms[Int64(64 * c + lowest_bit(word)) * n_words + w];
                several |= once & atom;
                once |= atom;
                product = COVERS ? product | atom : product ^ atom;
            }
        if (errors) errors[i] ^= product & ~hidden;
        if (COVERS && covered) {
            covered[i] = once;
            twice[i] = several;
        }
    }
}

// Update rows after bits of the atoms were flipped; `flipping` has a one for each atom with a flip.
//
// Rows that use such an atom become stale. The number of changed error bits is added to `n_changed`.
extern "C" __global__ void follow_flips(
    const Word* codes, const Word* atoms, const Word* flips, const Word* flipping, const Word* unknown, Int64 n,
    int n_words, int n_code_words, Word* errors, Word* covered, Word* twice, unsigned char* stale, Word* n_changed
) {
    Int64 total = 0;
    for (Int64 i = THREAD; i < n * n_words; i += N_THREADS) {
        const Int64 j = i / n_words;
        const int w = int(i - j * n_words);
        const Word* code = codes + j * n_code_words;
        const Word hidden = UNKNOWN ? unknown[i] : 0;
        Word touched = 0, change = 0;
        for (int c = 0; c < n_code_words; c++) touched |= code[c] & flipping[c];
        if (!touched) continue;
        if (w == 0) stale[j] = 1;
        if (COVERS) {
            Word once = hidden, several = hidden;
            for (int c = 0; c < n_code_words; c++)
                for (Word word = code[c]; word; word &= word - 1) {
                    const Word atom = atoms[Int64(64 * c + lowest_bit(word)) * n_words + w];
                    several |= once & atom;
                    once |= atom;
                }
            change = covered[i] ^ once;
            covered[i] = once;
            twice[i] = several;
        } else {
            for (int c = 0; c < n_code_words; c++)
                for (Word word = code[c] & flipping[c]; word; word &= word - 1)
                    change ^= flips[Int64(64 * c + lowest_bit(word)) * n_words + w];
            change &= ~hidden;
        }
        errors[i] ^= change;
        total += __popcll(change);
    }
    total = warp_sum(total);
    if (LANE == 0 && total) atomicAdd(n_changed, Word(total));
}

// Bit i of word j of out = bit j of row i: the transpose of packed rows. A warp has 64 rows of a word.
extern "C" __global__ void transpose(const Word* words, Int64 n_rows, Int64 n_cols, Word* out) {
    const Int64 n_words = (n_cols + 63) >> 6, n_row_words = (n_rows + 63) >> 6;
    for (Int64 tile = WARP; tile < n_words * n_row_words; tile += N_WARPS) {
        const Int64 w = tile % n_words, block = tile / n_words;
        const Int64 low_row = 64 * block + LANE, high_row = low_row + 32;
        const Word low = low_row < n_rows ? words[low_row * n_words + w] : 0;
        const Word high = high_row < n_rows ? words[high_row * n_words + w] : 0;
        const int height = n_cols - 64 * w < 64 ? int(n_cols - 64 * w) : 64;
        for (int i = 0; i < height; i++) {
            const Word first = __ballot_sync(ALL_LANES, int(low >> i & 1));
            const Word second = __ballot_sync(ALL_LANES, int(high >> i & 1));
            if (LANE == (i & 31)) out[(64 * w + i) * n_row_words + block] = first | second << 32;
        }
    }
}

// out[i] = the number of ones of row i.
extern "C" __global__ void row_weights(const Word* words, Int64 n_rows, Int64 n_words, Int64* out) {
    for (Int64 j = WARP; j < n_rows; j += N_WARPS) {
        Int64 total = 0;
        for (Int64 w = LANE; w < n_words; w += 32) total += __popcll(words[j * n_words + w]);
        total = warp_sum(total);
        if (LANE == 0) out[j] = total;
    }
}

// total += the number of bits in which two arrays differ.
extern "C" __global__ void count_differences(const Word* words, const Word* others, Int64 n, Word* total) {
    Int64 count = 0;
    for (Int64 i = THREAD; i < n; i += N_THREADS) count += __popcll(words[i] ^ others[i]);
    count = warp_sum(count);
    if (LANE == 0 && count) atomicAdd(total, Word(count));
}

// out[j] = row j has an error that one more atom could remove, and may use one more atom.
extern "C" __global__ void find_improvable(
    const Word* errors, const Word* codes, const Word* covered, Int64 n, int n_words, int n_code_words, Int64 max_atoms,
    Int64 residual_limit, unsigned char* out
) {
    for (Int64 j = WARP; j < n; j += N_WARPS) {
        const Word* row = errors + j * n_words;
        bool is_wrong = false;
        for (int w = LANE; w < n_words; w += 32)
            is_wrong |= (row[w] & (COVERS ? ~covered[j * n_words + w] : ~Word(0))) != 0;
        is_wrong = __any_sync(ALL_LANES, is_wrong);
        const bool may_use = weight(codes + j * n_code_words, n_code_words) < max_atoms;
        const bool is_coded = weight(row, n_words) > residual_limit;
        if (LANE == 0) out[j] = is_wrong && may_use && is_coded;
    }
}

// out[i, j] = bit j of row i as a number of 16 bits: `one`, or 1 where `fixed` has a one. A thread has eight bits.
extern "C" __global__ void unpack(
    const Word* words, const Word* fixed, Int64 n_rows, int n_words, int n_bytes, int one, uint4* out
) {
    const unsigned char *bytes = (const unsigned char*)words, *fixed_bytes = (const unsigned char*)fixed;
    for (Int64 i = THREAD; i < n_rows * n_bytes; i += N_THREADS) {
        const Int64 row = n_rows * n_bytes < (1 << 30) ? int(i) / n_bytes : i / n_bytes;
        const Int64 byte = row * n_words * 8 + (i - row * n_bytes);
        const unsigned held = fixed ? fixed_bytes[byte] : 0, bits = bytes[byte] & ~held;
        unsigned pairs[4];
        for (int k = 0; k < 4; k++) {
            const unsigned low = bits >> 2 * k & 1 ? one : held >> 2 * k & 1 ? 0x3C00 : 0;
            const unsigned high = bits >> (2 * k + 1) & 1 ? one : held >> (2 * k + 1) & 1 ? 0x3C00 : 0;
            pairs[k] = low | high << 16;
        }
        out[i] = uint4{pairs[0], pairs[1], pairs[2], pairs[3]};
    }
}
