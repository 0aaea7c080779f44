"""Images of atoms and samples, pixel by pixel."""

import numpy as np
import pytest

from bitatoms import BitMatrix
from bitatoms.reproduce.mosaics import GAP, RED, coded_samples, mosaic, with_blocks, with_stripe
from support.strategies import random_bits


@pytest.mark.parametrize(("n_atoms", "across"), [(1, 4), (5, 2), (6, 3), (7, 16)])
def test_mosaic_is_filled_row_by_row(n_atoms, across):
    atoms = random_bits(n_atoms, n_atoms, 12, 0.4)
    sheet = mosaic(BitMatrix.from_dense(atoms), (3, 4), across)
    wide = min(across, n_atoms)
    assert sheet.shape == (-(-n_atoms // wide) * 4 + 1, wide * 5 + 1)
    for atom in range(n_atoms):
        top, left = 1 + atom // wide * 4, 1 + atom % wide * 5
        assert (sheet[top : top + 3, left : left + 4] == atoms[atom].reshape(3, 4)).all()
    assert (sheet == GAP).sum() == sheet.size - atoms.size


def test_framed_atom_is_surrounded_by_its_colour():
    atoms = BitMatrix.from_dense(random_bits(0, 4, 9, 0.4))
    sheet = mosaic(atoms, (3, 3), 2, {3: RED})
    assert (sheet[5:12, 5:12] == RED).sum() == 7 * 7 - 9
    assert (sheet[7:10, 7:10] == atoms.to_dense()[3].reshape(3, 3)).all()


def test_samples_are_above_residuals_above_codes():
    data, errors = (random_bits(seed, 5, 6, 0.4) for seed in (0, 1))
    codes = random_bits(2, 5, 4, 0.4)
    sheet = coded_samples(*map(BitMatrix.from_dense, (data, errors, codes)), (2, 3), 3, {1: RED})
    bar = 3  # nine pixels for four atoms, rounded up
    line = 2 * 3 + 4 * bar + 2
    assert len(sheet) == 2 * line + 6
    for row in range(5):
        top, left = row // 3 * (line + 6), 1 + row % 3 * 4
        assert (sheet[top + 1 : top + 3, left : left + 3] == data[row].reshape(2, 3)).all()
        assert (sheet[top + 4 : top + 6, left : left + 3] == errors[row].reshape(2, 3)).all()
        shown = sheet[top + 7 : top + 7 + 4 * bar : bar, left]
        assert shown.tolist() == [code * (RED if atom == 1 else 1) for atom, code in enumerate(codes[row])]


def test_with_blocks_inserts_lines_between_blocks():
    picture = random_bits(0, 6, 8, 0.4)
    framed = with_blocks(picture, (3, 4))
    assert framed.shape == (7, 9)
    assert (framed[3] == GAP).all()
    assert (framed[:, 4] == GAP).all()
    assert (np.delete(np.delete(framed, 3, 0), 4, 1) == picture).all()


def test_with_stripe_frames_the_stripe_only():
    picture = random_bits(0, 40, 50, 0.4)
    shown = with_stripe(picture, 16, 16)
    assert (shown[:14] == picture[:14]).all()
    assert (shown[20:28, 4:-4] == picture[20:28, 4:-4]).all()
    assert set(np.unique(shown[15:17])) == {6}
