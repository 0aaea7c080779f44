"""Third-party programs: found without importing them, silenced, and errors raised as one line."""

import importlib
import sys
import warnings

import numpy as np
import pytest

from bitatoms.compare.third_party import ThirdPartyError, installed, versions

PYBMF = """
import sys, warnings
import numpy as np
from scipy.sparse import issparse, lil_matrix

class Model:
    extra = 0

    def __init__(self, k, **parameters):
        print("[I] k:", k)
        self.k = k

    def fit(self, X_train, X_val=None, X_test=None, task=None, show_logs=True, save_model=True, show_result=True):
        assert issparse(X_train) and task == "reconstruction" and not (show_logs or save_model or show_result)
        warnings.warn("noisy")
        print("progress", file=sys.stderr)
        self.show_matrix([("X", X_train)], title="basis")
        rows = np.asarray(X_train.todense())
        patterns = np.unique(rows[rows.any(axis=1)], axis=0)[:self.k + self.extra]
        self.V, self.U = lil_matrix(patterns.T), lil_matrix((rows[:, None] == patterns).all(axis=2).astype(float))

    def show_matrix(self, *args, **kwargs):
        raise RuntimeError("opened a window")

class Asso(Model):
    def __init__(self, tau, k=None, w_fp=0.5, w_fn=None):
        super().__init__(k)

class GreConD(Model):
    pass

class Panda(Model):
    extra = 1

class MEBF(Model):
    def fit(self, *args, **kwargs):
        raise IndexError("row index (7)\\n out of   range")
"""
NIMFA = """
import numpy as np

class Bmf:
    def __init__(self, V, seed, rank, max_iter, W, H):
        assert np.mat(W).shape == (len(V), rank)
        self.patterns = np.unique(V[V.any(axis=1)], axis=0)[:rank]
        self.codes = (V[:, None] == self.patterns).all(axis=2)

    def __call__(self):
        return self

    def basis(self):
        return np.mat(self.codes * 0.35)

    def coef(self):
        return np.mat(self.patterns * 0.45)
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


WORKING = ("PyBMF Asso", "PyBMF GreConD", "PyBMF Panda", "nimfa Bmf")


def test_programs_are_found_without_importing_them_and_errors_become_one_line(programs):
    assert {*WORKING, "PyBMF MEBF"} <= set(programs)
    assert {(each.package, each.algebra) for each in programs.values()} == {("PyBMF", "or"), ("nimfa", "or")}
    assert imported() == []
    assert versions() == {"PyBMF": "unknown", "nimfa": "unknown"}  # the fakes are not installed
    with pytest.raises(
        ThirdPartyError, match=r"^PyBMF MEBF raised IndexError: row index \(7\) out of range$"
    ) as caught:
        programs["PyBMF MEBF"].run(grouped(), 2, 0)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value.__cause__, IndexError)


@pytest.mark.parametrize("name", WORKING)
def test_program_returns_factors_silently(programs, name, capfd):
    X = grouped()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        factors = programs[name].run(X, 3, 0)
    assert (factors.atoms.dtype, factors.codes.dtype, factors.atoms.shape) == (np.uint8, np.uint8, (3, 9))
    np.testing.assert_array_equal(factors.codes @ factors.atoms > 0, X)
    assert (capfd.readouterr(), shown) == (("", ""), [])
    assert programs[name].run(grouped(4), 2, 0).atoms.shape == (2, 9)  # at most as many as asked for
    assert not hasattr(np, "mat")


def test_an_incompatible_version_raises(programs, tmp_path):
    with (tmp_path / "PyBMF" / "models.py").open("a") as file:
        file.write("Model.fit = lambda self, X, **kw: setattr(self, 'U', X) or setattr(self, 'V', X)")
    with pytest.raises(ThirdPartyError, match=r"PyBMF GreConD raised .*factors of shape"):
        programs["PyBMF GreConD"].run(grouped(), 3, 0)
