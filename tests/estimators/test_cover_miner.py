"""CoverMiner: roles of new users, and limits of roles by name."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import bitatoms as ba
from bitatoms import CoverMiner

pytestmark = pytest.mark.usefixtures("few_exchanges")


@pytest.fixture(scope="module")
def table():
    return ba.datasets.permissions(150)


@pytest.fixture(scope="module")
def miner(table):
    return CoverMiner(random_state=0, max_iter=2).fit(table)


def test_roles_are_those_of_cover(table, miner):
    expected = ba.cover(table, random_state=0, max_iter=2)
    assert (miner.components_ == expected.atoms.to_dense()).all()
    assert miner.n_components_ == expected.n_roles == 10
    assert miner.cover_.codes == expected.codes
    assert miner.n_iter_ == len(expected.history) > 1
    assert miner.feature_names_in_.tolist() == list(table.columns)
    assert miner.get_feature_names_out()[0] == "atom1"


def test_rows_get_only_roles_that_they_contain(table, miner):
    codes = miner.transform(table)
    assert (miner.inverse_transform(codes) == table.to_dense()).all()
    assert (codes.sum(axis=1) <= miner.cover_.codes.row_weights()).all()
    assert (pickle.loads(pickle.dumps(miner)).transform(table) == codes).all()
    new = table.to_dense() & (np.random.default_rng(0).random(table.shape) < 0.9)
    codes = miner.transform(ba.Table(ba.BitMatrix.from_dense(new), None, table.columns))
    covered = miner.inverse_transform(codes)
    assert not (covered & ~new & 1).any()
    assert (covered != new).any()
    reordered = ba.Table(ba.BitMatrix.from_dense(new[:, ::-1]), None, table.columns[::-1])
    assert (miner.transform(reordered) == codes).all()


def test_a_time_limit_is_a_warning_unless_the_cover_is_optimal(table):
    with pytest.warns(ConvergenceWarning, match="max_time ended the search"):
        CoverMiner(objective="assignments", max_time=1e-9).fit(table)


def test_an_interrupted_miner_holds_the_best_cover(table):
    def callback(row):
        raise KeyboardInterrupt

    miner = CoverMiner(callbacks=callback, random_state=0)
    with pytest.raises(ba.Interrupted):
        miner.fit(table)
    assert (miner.inverse_transform(miner.transform(table)) == table.to_dense()).all()


FRAME = pd.DataFrame([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]], index=["ann", "bob", "cat"], columns=list("abcd"))


def test_names_of_a_data_frame_apply_to_limits():
    fixed = pd.DataFrame([[1, 0, 0, 1]], columns=["d", "b", "a", "c"])
    miner = CoverMiner(fixed_atoms=fixed, max_iter=1, random_state=0).fit(FRAME)
    assert miner.components_[0].tolist() == [0, 0, 1, 1]
    miner = CoverMiner(apart=[("b", "a")], max_iter=1, random_state=0).fit(FRAME)
    assert (miner.components_[:, :2].sum(axis=1) <= 1).all()
    assert miner.feature_names_in_.tolist() == list(FRAME.columns)
    together = [("d", "c")]
    miner = CoverMiner(together=together, max_iter=1, random_state=0).fit(FRAME[["c", "a", "d", "b"]])
    assert (miner.components_[:, 0] == miner.components_[:, 2]).all()
    with pytest.raises(ValueError, match="together cannot be kept: 'dan' has 'c', but not 'd'"):
        CoverMiner(together=together).fit(pd.concat([FRAME, FRAME.iloc[2:].rename({"cat": "dan"}).assign(d=0)]))
