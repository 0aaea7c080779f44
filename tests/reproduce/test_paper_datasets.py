"""The data sets of the paper, from files and bundled."""

import gzip

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix, datasets
from bitatoms.io.errors import FileError
from bitatoms.reproduce import reproduce
from bitatoms.reproduce.datasets import load_digits, load_halftone
from bitatoms.reproduce.experiments.input_data import sample_indices, stripe_row
from bitatoms.table import Picture, Table
from support.mnist import idx
from support.strategies import random_bits


def test_stripe_is_a_row_of_blocks():
    dataset = load_halftone(None)
    rows = sample_indices(dataset, 0)
    top = stripe_row(dataset) * 16
    again = datasets.stitch_blocks(dataset.data[rows], (16, dataset.picture.shape[1]), (16, 16))
    assert (again == dataset.picture[top : top + 16]).all()


def test_bundled_data_are_marked_as_substitutes():
    for dataset in (load_digits(None), load_halftone(None)):
        assert dataset.is_substitute
        assert "scikit-learn" in dataset.description


def test_picture_is_read_in_blocks_or_in_full(tmp_path):
    picture = datasets.halftone()[:150, :170]
    cut = Table(BitMatrix.from_dense(datasets.cut_blocks(picture)), picture=Picture((16, 16), picture.shape))
    ba.write(Table(BitMatrix.from_dense(picture)), tmp_path / "whole.pbm")
    ba.write(cut, tmp_path / "blocks.npz")
    whole, blocks = (load_halftone(tmp_path / name) for name in ("whole.pbm", "blocks.npz"))
    assert (whole.picture == picture).all()
    assert (blocks.picture == picture).all()
    assert whole.data == blocks.data
    assert (whole.name, whole.is_substitute) == ("halftone", True)  # not the size of the paper's picture


def test_picture_of_the_papers_size_is_einstein(tmp_path):
    ba.write(
        Table(BitMatrix.from_dense(np.tile(datasets.halftone()[:580], (2, 1))[:, :896])), tmp_path / "einstein.pbm"
    )
    dataset = load_halftone(tmp_path / "einstein.pbm")
    assert (dataset.name, dataset.is_substitute, dataset.data.shape) == ("Einstein", False, (4088, 256))


def test_digits_are_read_from_the_mnist_format_or_a_table(tmp_path):
    pictures = np.tile(np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8), (25, 1, 1))
    (tmp_path / "t10k").write_bytes(gzip.compress(idx(pictures), mtime=0))
    ba.write(Table(BitMatrix.from_dense((pictures >= 128).reshape(75, -1))), tmp_path / "large.npz")
    ba.write(Table(BitMatrix.from_dense(random_bits(0, 75, 289, 0.4))), tmp_path / "small.npz")
    published, large, small = (load_digits(tmp_path / name) for name in ("t10k", "large.npz", "small.npz"))
    assert (published.data.to_dense() == datasets.mnist(tmp_path / "t10k").X).all()
    assert large.data.shape == small.data.shape == (75, 289)
    assert (small.data.to_dense() == random_bits(0, 75, 289, 0.4)).all()
    assert "17 × 17" in published.description
    assert not published.is_substitute


def test_unknown_format_and_negative_seed_raise(tmp_path):
    (tmp_path / "digits").write_bytes(b"something else")
    with pytest.raises(FileError, match="not a known table format; pass digits, such as t10k"):
        load_digits(tmp_path / "digits")
    with pytest.raises(ValueError, match="random_state must be at least 0"):
        reproduce(tmp_path / "paper", random_state=-1)


@pytest.mark.parametrize(("shape", "message"), [((100, 300), "are not square"), ((63, 289), "63 samples are too few")])
def test_tables_that_are_not_digits_raise_with_the_path(tmp_path, shape, message):
    ba.write(Table(BitMatrix.from_dense(random_bits(0, *shape, 0.4))), tmp_path / "table.npz")
    with pytest.raises(FileError, match=message) as error:
        load_digits(tmp_path / "table.npz")
    assert "table.npz" in str(error.value)


def test_picture_of_few_blocks_raises(tmp_path):
    ba.write(Table(BitMatrix.from_dense(random_bits(0, 40, 40, 0.4))), tmp_path / "small.pbm")
    with pytest.raises(FileError, match="9 samples are too few"):
        load_halftone(tmp_path / "small.pbm")
