"""Third-party programs: found without importing them, silenced, and errors raised as one line."""

import importlib
import sys
import warnings

import numpy as np
import pytest

from bitatoms.baselines.baseline import Factors
from bitatoms.compare.third_party import ThirdPartyError, installed, versions

PYBMF = '''
import sys, warnings
import numpy as np
from scipy.sparse import csr_matrix, issparse, lil_matrix

class Model:
    """The call shape of PyBMF's models: parameters, a fit that prints, and factors U and V."""

    def __init__(self, k, **parameters):
        print("[I] k:", k)
        self.k, self.parameters, self.extra = k, parameters, 0

    def fit(self, X_train, X_val=None, X_test=None, task=None, show_logs=True, save_model=True, show_result=True):
        assert issparse(X_train) and task == "reconstruction"
        assert not (show_logs or save_model or show_result)
        warnings.warn("noisy")
        print("progress", file=sys.stderr)
        self.show_matrix([("X", X_train)], title="basis")
        rows = np.asarray(X_train.todense())
        patterns, self.count = np.unique(rows[rows.any(axis=1)], axis=0), None
        k = min(len(patterns), self.k + self.extra)
        self.V = lil_matrix(patterns[:k].T)
        self.U = lil_matrix((rows[:, None] == patterns[None, :k]).all(axis=2).astype(float))

    def show_matrix(self, *args, **kwargs):
        raise RuntimeError("opened a window")

class Asso(Model):
    def __init__(self, tau, k=None, w_fp=0.5, w_fn=None):
        super().__init__(k)

class GreConD(Model):
    pass

class Panda(Model):
    def fit(self, *args, **kwargs):
        self.extra = 1
        super().fit(*args, **kwargs)

class MEBF(Model):
    def fit(self, *args, **kwargs):
        raise IndexError("row index (7)\\n out of   range")
'''
NIMFA = """
import numpy as np

class Bmf:
    def __init__(self, V, seed, rank, max_iter, W, H):
        self.W, self.H = np.mat(W), np.mat(H)
        assert self.W.shape == (len(V), rank)
        self.V, self.rank = V, rank

    def __call__(self):
        patterns = np.unique(self.V[self.V.any(axis=1)], axis=0)
        k = min(len(patterns), self.rank)
        self.found = (self.V[:, None] == patterns[None, :k]).all(axis=2) * 0.35, patterns[:k] * 0.45
        return self

    def basis(self):
        return np.mat(self.found[0])

    def coef(self):
        return np.mat(self.found[1])
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Install fakes of PyBMF and nimfa with the interface of the real ones; return the programs by name."""
    (tmp_path / "PyBMF").mkdir()
    (tmp_path / "PyBMF" / "__init__.py").write_text("print('loud')\n")
    (tmp_path / "PyBMF" / "models.py").write_text(PYBMF)
    (tmp_path / "nimfa.py").write_text(NIMFA)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in imported():
        monkeypatch.delitem(sys.modules, name)  # restored after the test
    importlib.invalidate_caches()
    yield {program.name: program for program in installed()}
    for name in imported():
        del sys.modules[name]


def imported():
    return [name for name in sys.modules if name.partition(".")[0] in ("PyBMF", "nimfa")]


def grouped(n_patterns=3):
    """Return a table in which each row is one of a few patterns."""
    return np.repeat(np.eye(n_patterns, 9, dtype=np.uint8) | np.eye(n_patterns, 9, 4, dtype=np.uint8), 5, axis=0)


def product(factors):
    return (factors.codes @ factors.atoms > 0).astype(np.uint8)


WORKING = ("PyBMF Asso", "PyBMF GreConD", "PyBMF Panda", "nimfa Bmf")


def test_programs_are_found_without_importing_them(programs):
    assert {*WORKING, "PyBMF MEBF"} <= set(programs)
    assert {program.package for program in programs.values()} == {"PyBMF", "nimfa"}
    assert {program.algebra for program in programs.values()} == {"or"}
    assert "PyBMF" not in sys.modules
    assert "nimfa" not in sys.modules
    assert versions() == {"PyBMF": "unknown", "nimfa": "unknown"}  # the fakes are not installed


@pytest.mark.parametrize("name", WORKING)
def test_program_returns_factors_silently(programs, name, capfd):
    X = grouped()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        factors = programs[name].run(X, 3, 0)
    assert isinstance(factors, Factors)
    assert (factors.atoms.dtype, factors.codes.dtype) == (np.uint8, np.uint8)
    assert factors.atoms.shape == (3, 9)
    np.testing.assert_array_equal(product(factors), X)
    assert capfd.readouterr() == ("", "")
    assert shown == []
    assert programs[name].run(grouped(4), 2, 0).atoms.shape == (2, 9)  # at most as many as asked for
    assert not hasattr(np, "mat")


def test_errors_become_one_line(programs):
    with pytest.raises(ThirdPartyError) as caught:
        programs["PyBMF MEBF"].run(grouped(), 2, 0)
    assert str(caught.value) == "PyBMF MEBF raised IndexError: row index (7) out of range"
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value.__cause__, IndexError)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("Model.fit = lambda self, X, **kw: setattr(self, 'U', X) or setattr(self, 'V', X)", "factors of shape"),
        ("del GreConD", "AttributeError: module 'PyBMF.models' has no attribute 'GreConD'"),
    ],
)
def test_incompatible_version_raises(programs, tmp_path, change, match):
    with (tmp_path / "PyBMF" / "models.py").open("a") as file:
        file.write(change)
    with pytest.raises(ThirdPartyError, match=f"PyBMF GreConD raised .*{match}"):
        programs["PyBMF GreConD"].run(grouped(), 3, 0)
