"""A result that is not what was asked for is an internal error, wherever it comes from."""

from dataclasses import replace

import numpy as np
import pytest

import bitatoms as ba
import naive
from bitatoms.api import with_columns_of
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Header
from bitatoms.engine.codelength import Codelength
from bitatoms.engine.objective import Objective, settle_bias
from bitatoms.errors import InternalError
from bitatoms.model.model import Model
from bitatoms.model.result import Factorization, ResultBase
from bitatoms.search.verification import verified
from support.faults import ctrl_c_when
from support.parameters import nested, resolved
from support.ways import WAYS

X = np.array([[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, 2, 1, 1], [0, 1, 0, 0, 0]])
X = X.astype(np.uint8)  # 2 is unknown
ATOMS = np.array([[1, 1, 0, 0, 0], [0, 0, 0, 1, 1]], np.uint8)
CODES = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]], np.uint8)
N, M = X.shape


def described(atoms=ATOMS, codes=CODES, bias=None, algebra="or", **changes):
    """Return a factorization of X by these factors whose figures are all right, apart from the changes."""
    bias = np.zeros(M, np.uint8) if bias is None else np.asarray(bias, np.uint8)
    atoms, codes = np.asarray(atoms, np.uint8), np.asarray(codes, np.uint8)
    errors = naive.errors(X, atoms, codes, algebra, bias)
    ones, known = (X == 1).sum(axis=0), naive.known(X).sum(axis=0, dtype=np.int64)
    figures = {
        "codelength": Codelength(*naive.codelength(X, atoms, codes, algebra, bias)),
        "wrong": errors.sum(axis=0, dtype=np.int64),
        "ones": ones,
        "missed": (errors & (X == 1)).sum(axis=0, dtype=np.int64),
        "known": known,
        "bits_without": sum(naive.string_bits(int(n), int(r)) for n, r in zip(known, ones, strict=True)),
        "saved": np.zeros(len(atoms), np.int64),
        "history": (),
    }
    factors = {"atoms": BitMatrix.from_dense(atoms), "codes": BitMatrix.from_dense(codes)}
    return Factorization(**factors | {"bias": bias, "algebra": algebra} | figures | changes)


def without_codes(found, **changes):
    """Return the same result without codes, as passes over a store give it."""
    shared = {name: getattr(found, name) for name in ResultBase.__dataclass_fields__}
    return Model(**shared | {"n_samples": found.n_samples, "uses": found.uses} | changes)


def with_words(bits, row, words):
    """Return bits of which one row has these words, whether they are valid or not."""
    changed = bits.words.copy()
    changed[row] = words
    return BitMatrix.from_words(changed, bits.n_cols, check=False)


def asked(n_components="mdl", **parameters):
    """Return the parameters of a search of X."""
    return with_columns_of(resolved(n_components, **{"algebra": "or", **parameters}), Header(M))


def by_windows(params):
    """Return the parameters of a search that takes X for a wide table."""
    windows = replace(params.plan.windows, min_features=M)
    return replace(params, plan=replace(params.plan, windows=windows))


FOUND, BIASED = described(), described(bias=[0, 1, 0, 0, 0], atoms=ATOMS & [1, 0, 1, 1, 1])
HIDDEN = np.zeros((N, 2), bool)
HIDDEN[-1] = True  # a sample that uses no atom
THREE = np.vstack([ATOMS, [0, 0, 1, 0, 0]]), np.hstack([CODES, np.eye(N, 1, dtype=np.uint8)])


@pytest.mark.parametrize(
    ("result", "params"),
    [
        (described(), asked()),
        (described(), asked(2, bias=False, max_features_per_atom=2, min_samples_per_atom=3)),
        (described(), asked(4, max_components=1)),  # which limits "mdl" only
        (described(), asked(max_components=2, max_atoms_per_sample=2, apart=[(0, 3)], together=[(0, 1)])),
        (described(), asked(fixed_atoms=ATOMS[:1], max_features_per_atom=2)),
        (described(np.zeros((2, M)), np.zeros((N, 2))), asked(fixed_atoms=np.zeros((2, M)))),
        (described(ended="max_time", atoms=THREE[0], codes=THREE[1] * [1, 1, 0]), asked(3)),  # an atom without users
        (described(*THREE), asked(3)),
        (described(*THREE), asked(fixed_atoms=THREE[0])),
        (described(*THREE), asked(search="paper", algebra="or")),
        (described(algebra="xor"), asked(algebra="auto")),
        (BIASED, asked()),
        (described(), asked(false_positive_cost=np.inf)),
        (described(ATOMS[1:], CODES[:, 1:]), by_windows(asked())),  # no atom has the second column
        (without_codes(described()), asked()),
        (without_codes(described(), ended="max_time"), asked(min_samples_per_atom=6)),
    ],
)
def test_what_was_asked_for_is_returned(result, params):
    n_rows = 2 * N if isinstance(result, Model) and result.ended == "max_time" else N  # half of the rows
    assert verified(result, params, n_rows, M) is result


@pytest.mark.parametrize(
    ("result", "params", "message"),
    [
        # Shapes.
        (replace(FOUND, atoms=BitMatrix.zeros(2, M + 1)), asked(), "the atoms have 6 features, and the table 5"),
        (replace(FOUND, bias=np.zeros(M + 1, np.uint8)), asked(), r"bias has shape \(6,\), not \(5,\)"),
        (described(wrong=np.zeros((1, M))), asked(), r"wrong has shape \(1, 5\)"),
        (described(saved=np.zeros(3)), asked(), r"saved has shape \(3,\), not \(2,\)"),
        (described(atom_known=np.zeros(1)), asked(), r"atom_known has shape \(1,\), not \(2,\)"),
        (replace(FOUND, codes=BitMatrix.zeros(N, 3)), asked(), r"uses has shape \(3,\), not \(2,\)"),
        (replace(FOUND, sample_weight=np.ones(N, int), codes=FOUND.codes[:4]), asked(), r"codes have shape \(4, 2\)"),
        (replace(FOUND, codes=FOUND.codes[:4]), asked(), "about 4 of 6 samples"),
        (without_codes(described(), n_samples=N + 1), asked(), "about 7 of 6 samples"),
        (described(remembered=BitMatrix.zeros(1, 3)), asked(), "remembered codes have 3 atoms"),
        # Figures.
        (described(wrong=np.full(M, 7)), asked(), "wrong in more samples than know it"),
        (described(wrong=np.full(M, -1)), asked(), "wrong in more samples than know it"),
        (without_codes(described(), uses=np.array([7, 3])), asked(), "more users than there are samples"),
        (described(codelength=Codelength(1, 2, 3)), asked(), "the codelength is .*, and not "),
        (described(missed=np.full(M, 2)), asked(), "more ones are missed, or added"),
        (described(missed=np.zeros(M, np.int64), ones=np.full(M, N)), asked(), "more ones are missed, or added"),
        (described(bits_without=1), asked(), "bits without atoms, and not 1"),
        (described(ATOMS | [0, 0, 1, 0, 0]), asked(false_positive_cost=np.inf), "false_positive_cost forbids"),
        # Algebra and bias.
        (described(algebra="xor"), asked(), "the algebra is xor, and not or"),
        (replace(described(bias=[0, 1, 1, 0, 0]), bias=np.array([0, 2, 0, 0, 0], np.uint8)), asked(), "0 and 1"),
        (BIASED, asked(bias=False), "a bias was learned"),
        (BIASED, asked(2), "a bias was learned"),
        (BIASED, asked(fixed_atoms=BIASED.atoms), "a bias was learned"),
        (described(codes=np.zeros((N, 2))), asked(), "the bias does not take it"),
        (described(ATOMS[1:], CODES[:, 1:]), asked(), "the bias does not take it"),
        (described([[0, 1, 0, 1, 1]], CODES[:, 1:]), by_windows(asked()), "the bias does not take it"),
        # Atoms.
        (described(ATOMS[::-1], CODES[:, ::-1]), asked(fixed_atoms=ATOMS), "fixed atoms are not the first"),
        (described(ATOMS[:1], CODES[:, :1]), asked(2, fixed_atoms=ATOMS), "fixed atoms are not the first"),
        (described(*THREE), asked(2), "3 atoms, more than n_components=2"),
        (described(*THREE), asked(max_components=2), "3 atoms, more than max_components=2"),
        (described(), asked(max_features_per_atom=1), "not within max_features_per_atom"),
        (described(), asked(fixed_atoms=ATOMS[:1], max_features_per_atom=1), "not within max_features_per_atom"),
        (described(), asked(apart=[(0, 1)]), "not within max_features_per_atom, apart"),
        (described(), asked(together=[(1, 2)]), "not within max_features_per_atom, apart and together"),
        (described(), asked(min_samples_per_atom=4), "fewer users than min_samples_per_atom=4"),
        (described(*THREE), asked(), "fewer than 2 users"),
        (described(*THREE, ended="max_time"), asked(fixed_atoms=ATOMS), "fewer than 2 users"),
        (described(THREE[0], THREE[1] * np.array([1, 1, 0])), asked(3), "no sample uses it"),
        (described(THREE[0] * np.array([[1], [1], [0]]), THREE[1]), asked(3), "has no features"),
        (replace(FOUND, atoms=with_words(FOUND.atoms, 0, 1 + 64)), asked(), "features that the table does not have"),
        (replace(FOUND, atoms=FOUND.atoms.with_unknown(BitMatrix.from_dense(1 - ATOMS))), asked(), "that are unknown"),
        # Codes.
        (replace(FOUND, codes=with_words(FOUND.codes, 5, 4)), asked(), "codes use atoms that do not exist"),
        (replace(FOUND, codes=FOUND.codes.with_unknown(BitMatrix.from_dense(HIDDEN))), asked(), "or are unknown"),
        (described(), asked(max_atoms_per_sample=1), "more atoms than max_atoms_per_sample=1"),
    ],
)  # fmt: skip
def test_what_was_not_asked_for_is_an_internal_error(result, params, message):
    with pytest.raises(InternalError, match=message):
        verified(result, params, N, M)


def fit_interrupted(parameters, X, folder):
    return ba.factorize(X, **nested(callbacks=ctrl_c_when(lambda row: row.round == 2), **parameters))


@pytest.mark.filterwarnings("ignore:2 atoms were requested")
@pytest.mark.parametrize("fit", [*WAYS, fit_interrupted])
def test_no_way_to_fit_returns_a_result_that_was_not_asked_for(monkeypatch, fit, tmp_path):
    """A defect of version 0.2.0 is made again: searches within limits learned a bias that must not be."""

    def settled_bias(self, block):
        return settle_bias(block.n_known, block.wrong(), block.bias)

    monkeypatch.setattr(Objective, "settled_bias", settled_bias)
    with pytest.raises(InternalError, match=r"a bias was learned, .* please report this"):
        fit({"n_components": 2, "max_features_per_atom": 2, "random_state": 0}, np.ones((40, 6), int), tmp_path)


def test_errors_of_earlier_batches_are_not_forbidden():
    """They were coded with other atoms. Everything else is checked."""
    found, params = described(ATOMS | [0, 0, 1, 0, 0]), asked(false_positive_cost=np.inf)
    assert verified(found, params, N, M, of_stream=True) is found
    with pytest.raises(InternalError, match="the codelength is"):
        verified(replace(found, codelength=Codelength(1, 2, 3)), params, N, M, of_stream=True)


def test_a_batch_whose_result_is_discarded_leaves_the_estimator_as_it_was(monkeypatch):
    model = ba.BinaryDictionaryLearning(
        2, constraints=ba.Constraints(max_features_per_atom=2), algebra="xor", random_state=0
    )
    model.partial_fit(np.eye(20, 6, dtype=int))
    before = model.components_.copy()
    monkeypatch.setattr(
        Objective,
        "settled_bias",
        lambda self, block: settle_bias(np.full(block.n_features, 20), block.wrong(), block.bias),
    )
    with pytest.raises(InternalError):
        model.partial_fit(np.ones((40, 6), int))
    np.testing.assert_array_equal(model.components_, before)
    assert model.as_model().n_samples == 20
