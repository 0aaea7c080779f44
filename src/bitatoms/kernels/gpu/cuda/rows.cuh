// A row, its code and errors, and what a toggle of an atom changes: as kernels/cpu/words.py and kernels/cpu/gains.py.
#pragma once
#include "warp.cuh"

#define USED (1 << 30)     // subtracted from the gain of a used atom under OR, so that it is not added again
#define NO_GAIN (-(1 << 30) - (1 << 29))  // the gain of an atom that does not exist

// The state of all rows.
struct Rows {
    Word* errors;
    Word* codes;
    Word* covered;
    Word* twice;
    const Word* unknown;
    int n_words;
    int n_code_words;
};

// A row, in memory that the threads of a warp share.
struct Row {
    Word* errors;
    Word* code;
    Word* covered;
    Word* twice;
    Word* unknown;
    Word* changed;  // the bits that a toggle changed
    int n_words;
    int n_code_words;

    __device__ __forceinline__ Word unknown_word(int w) const {
        return UNKNOWN ? unknown[w] : 0;
    }

    // The bits that one more atom cannot change: unknown, or under OR covered.
    __device__ __forceinline__ Word fixed_word(int w) const {
        return COVERS ? covered[w] : unknown_word(w);
    }
};

// The atoms, and the tables by which rows are coded.
struct Atoms {
    const Word* words;        // (n_atoms, n_words)
    const int* weights;       // of each atom, at prices
    const int* overlaps;      // (n_atoms, 32 GAINS): the bits that two atoms share, at prices, doubled under XOR
    const unsigned* columns;  // (n_features, GAINS): the atoms that have each feature
    int n_atoms;
    const float* shares;  // (n, 32 GAINS): what each atom shares with each row (see `first_gains`); may be null
};

// What errors and uses cost; with own costs, `bits` are the prices of missed ones.
struct Prices {
    const int* bits;
    const int* uses;
    const int* added;
    const int* mean;
    const Word* forbidden;  // null if no column is
    int refused;            // an atom that cannot be used, -1 for none

    __device__ __forceinline__ int use(int k) const {
        if (!PRICED) return 0;
        return k == refused ? REFUSED : uses[k];
    }
};

struct Rule {
    Int64 max_atoms;
    Int64 residual_limit;
    int swaps;
    Prices prices;
};

// The arguments by which kernels get rows, atoms and the rule; and these, with `shares` or without (nullptr).
#define ROWS_ARGUMENTS \
    Word *errors, Word *codes, Word *covered, Word *twice, const Word *unknown, int n_words, int n_code_words
#define ATOMS_ARGUMENTS \
    const Word *atom_words, const int *weights, const int *overlaps, const unsigned *columns, int n_atoms, \
        const float *shares
#define RULE_ARGUMENTS \
    const int *bits, const int *uses, const int *added, const int *mean, const Word *forbidden, Int64 max_atoms, \
        Int64 residual_limit, int swaps
#define STATE(product) \
    const Rows rows = {errors, codes, covered, twice, unknown, n_words, n_code_words}; \
    const Atoms atoms = {atom_words, weights, overlaps, columns, n_atoms, product}; \
    Rule rule = {max_atoms, residual_limit, swaps, {bits, uses, added, mean, forbidden, -1}}; \
    (void)rule;

// The work memory of a warp: `words_of_row(...)` words.
__device__ __forceinline__ Row row_in(Word* memory, int n_words, int n_code_words) {
    Row row;
    row.n_words = n_words;
    row.n_code_words = n_code_words;
    row.errors = memory;
    row.changed = row.errors + n_words;
    row.code = row.changed + n_words;
    row.unknown = row.code + n_code_words;
    row.covered = row.unknown + (UNKNOWN ? n_words : 0);
    row.twice = row.covered + (COVERS ? n_words : 0);
    return row;
}

__device__ __forceinline__ int words_of_row(int n_words, int n_code_words) {
    return n_words * (2 + UNKNOWN + 2 * COVERS) + n_code_words;
}

__device__ __forceinline__ void load_row(const Rows& rows, Int64 j, Row& row) {
    __syncwarp();
    copy_words(rows.codes + j * rows.n_code_words, row.code, row.n_code_words);
    copy_words(rows.errors + j * rows.n_words, row.errors, row.n_words);
    if (UNKNOWN) copy_words(rows.unknown + j * rows.n_words, row.unknown, row.n_words);
    if (COVERS) {
        copy_words(rows.covered + j * rows.n_words, row.covered, row.n_words);
        copy_words(rows.twice + j * rows.n_words, row.twice, row.n_words);
    }
}

__device__ __forceinline__ void store_row(const Row& row, const Rows& rows, Int64 j) {
    copy_words(row.code, rows.codes + j * rows.n_code_words, row.n_code_words);
    copy_words(row.errors, rows.errors + j * rows.n_words, row.n_words);
    if (COVERS) {
        copy_words(row.covered, rows.covered + j * rows.n_words, row.n_words);
        copy_words(row.twice, rows.twice + j * rows.n_words, row.n_words);
    }
}

// Set `covered` and `twice` from the code. Unknown cells count as covered twice.
__device__ inline void cover(Row& row, const Atoms& atoms) {
    for (int w = LANE; w < row.n_words; w += 32) {
        Word covered = row.unknown_word(w), twice = covered;
        for (int c = 0; c < row.n_code_words; c++) {
            for (Word word = row.code[c]; word; word &= word - 1) {
                Word atom = atoms.words[Int64(64 * c + lowest_bit(word)) * row.n_words + w];
                twice |= covered & atom;
                covered |= atom;
            }
        }
        row.covered[w] = covered;
        row.twice[w] = twice;
    }
    __syncwarp();
}

// The sum of the prices of the ones of word w.
__device__ __forceinline__ int word_price(Word word, int w, const int* prices) {
    int total = 0;
    for (; word; word &= word - 1) total += prices[64 * w + lowest_bit(word)];
    return total;
}

// The cost of the errors of a row and of its atoms.
__device__ inline Int64 row_price(const Row& row, const Prices& prices) {
    Int64 total = 0;
    for (int w = LANE; w < row.n_words; w += 32) {
        total += word_price(row.errors[w], w, prices.bits);
        if (OWN_COSTS) {
            Word added = row.errors[w] & row.covered[w];
            total += 2 * (Int64(word_price(added, w, prices.mean)) - word_price(added, w, prices.bits));
        }
    }
    for (int c = LANE; c < row.n_code_words; c += 32) total += word_price(row.code[c], c, prices.uses);
    return warp_sum(total);
}

// Remove all atoms from a row.
__device__ inline void drop_all(Row& row, const Atoms& atoms) {
    for (int w = LANE; w < row.n_words; w += 32) {
        Word unknown = row.unknown_word(w);
        if (COVERS) {
            row.errors[w] ^= row.covered[w] & ~unknown;
            row.covered[w] = row.twice[w] = unknown;
            continue;
        }
        Word product = 0;
        for (int c = 0; c < row.n_code_words; c++)
            for (Word word = row.code[c]; word; word &= word - 1)
                product ^= atoms.words[Int64(64 * c + lowest_bit(word)) * row.n_words + w];
        row.errors[w] ^= product & ~unknown;
    }
    __syncwarp();
    for (int c = LANE; c < row.n_code_words; c += 32) row.code[c] = 0;
    __syncwarp();
}

// Toggle atom k and set `changed`; return whether these are all bits of the atom, and whether the row now uses it.
__device__ inline bool toggle(Row& row, const Atoms& atoms, int k, bool& adds) {
    adds = !has_bit(row.code, k);
    __syncwarp();
    if (LANE == 0) row.code[k >> 6] ^= Word(1) << (k & 63);
    bool complete = true;
    for (int w = LANE; w < row.n_words; w += 32) {
        Word atom = atoms.words[Int64(k) * row.n_words + w], change = atom;
        if (COVERS) {
            Word covered = row.covered[w];
            if (adds) {
                change &= ~covered;
                row.twice[w] |= covered & atom;
                row.covered[w] = covered | atom;
            } else {
                change &= covered & ~row.twice[w];
            }
        } else {
            change &= ~row.unknown_word(w);
        }
        complete &= change == atom;
        row.changed[w] = change;
        row.errors[w] ^= change;
    }
    __syncwarp();
    if (COVERS && !adds) cover(row, atoms);
    return COVERS || UNKNOWN ? __all_sync(ALL_LANES, complete) : true;
}

// gains[i] += factor * (number, or total price, of the ones that the bits and atom 32 i + LANE share).
// `bits(w)` is word w of the bits, the same for all threads.
template <class Bits>
__device__ __forceinline__ void add_overlaps(
    Bits bits, int n_words, int factor, const int* prices, const Atoms& atoms, int (&gains)[GAINS]
) {
    const unsigned own = 1u << LANE;
    for (int w = 0; w < n_words; w++) {
        for (Word word = bits(w); word; word &= word - 1) {
            const int i = 64 * w + lowest_bit(word);
            const int value = PRICED ? factor * prices[i] : factor;
#if GAINS % 4 == 0
            const uint4* columns = (const uint4*)(atoms.columns + Int64(i) * GAINS);
            UNROLL
            for (int k = 0; k < GAINS / 4; k++) {
                const uint4 column = columns[k];
                if (column.x & own) gains[4 * k] += value;
                if (column.y & own) gains[4 * k + 1] += value;
                if (column.z & own) gains[4 * k + 2] += value;
                if (column.w & own) gains[4 * k + 3] += value;
            }
#else
            const unsigned* column = atoms.columns + Int64(i) * GAINS;
            UNROLL
            for (int k = 0; k < GAINS; k++)
                if (column[k] & own) gains[k] += value;
#endif
        }
    }
}

// gains = the gain of adding (XOR: toggling) each atom that row i of those coded does not use.
//
// Every one of the atom counts -1; those that are wrong and free count +2, and those that are not free +1. The sum of
// the latter two is a matrix product, which may have been computed before.
__device__ inline void first_gains(
    const Row& row, Int64 i, const Atoms& atoms, const Prices& prices, int (&gains)[GAINS]
) {
    UNROLL
    for (int k = 0; k < GAINS; k++) {
        const int atom = 32 * k + LANE;
        gains[k] = atom < atoms.n_atoms ? -atoms.weights[atom] - prices.use(atom) : NO_GAIN;
        if (atoms.shares) gains[k] += int(atoms.shares[i * 32 * GAINS + atom]);
    }
    if (atoms.shares) return;
    const int* both = OWN_COSTS ? prices.mean : prices.bits;
    add_overlaps([&](int w) { return row.errors[w] & ~row.fixed_word(w); }, row.n_words, 2, both, atoms, gains);
    if (COVERS || UNKNOWN) {
        const int* added = OWN_COSTS ? prices.added : prices.bits;
        add_overlaps([&](int w) { return row.fixed_word(w); }, row.n_words, 1, added, atoms, gains);
    }
}

// Whether atom k has a column in which no one may be added, and in which the row has none.
__device__ __forceinline__ bool adds_forbidden(const Row& row, const Atoms& atoms, int k, const Prices& prices) {
    Word lacked = 0;
    for (int w = 0; w < row.n_words; w++)
        lacked |= atoms.words[Int64(k) * row.n_words + w] & prices.forbidden[w] & ~(row.errors[w] ^ row.covered[w]);
    return lacked != 0;
}

// gains = the gain of toggling each atom.
__device__ inline void start_gains(
    const Row& row, Int64 i, const Atoms& atoms, const Prices& prices, int (&gains)[GAINS]
) {
    first_gains(row, i, atoms, prices, gains);
    UNROLL
    for (int k = 0; k < GAINS; k++) {
        const int atom = 32 * k + LANE;
        if (atom >= atoms.n_atoms) continue;
        if (has_bit(row.code, atom)) gains[k] += COVERS ? -USED : 2 * prices.use(atom);
        if (OWN_COSTS && prices.forbidden && adds_forbidden(row, atoms, atom, prices)) gains[k] -= USED;
    }
}
