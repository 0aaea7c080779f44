"""MNIST from OpenML and from its files: made small exactly, and damaged files refused in words."""

import gzip
from fractions import Fraction
from urllib.error import URLError

import numpy as np
import pytest

from bitatoms.datasets import mnist
from bitatoms.datasets.mnist_digits import is_published, shrunk
from support.mnist import idx

GRAY = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)


def naive_shrunk(picture, side):
    """Mean ink over the area of each new pixel, in fractions."""
    tall = len(picture)
    bits = np.zeros((side, side), np.uint8)
    for i in range(side):
        for j in range(side):
            ink = Fraction(0)
            for y in range(tall):
                down = max(Fraction(0), min(Fraction((i + 1) * tall, side), y + 1) - max(Fraction(i * tall, side), y))
                for x in range(tall) if down else ():
                    wide = max(
                        Fraction(0), min(Fraction((j + 1) * tall, side), x + 1) - max(Fraction(j * tall, side), x)
                    )
                    ink += down * wide * int(picture[y, x])
            bits[i, j] = ink / Fraction(tall * tall, side * side) * 2 >= 255
    return bits.ravel()


@pytest.mark.parametrize("side", [1, 5, 17])
def test_a_pixel_is_black_where_half_of_its_area_is_ink(side):
    expected = [naive_shrunk(picture, side) for picture in GRAY]
    assert (shrunk(GRAY, side) == expected).all()


def test_exactly_half_is_black_and_less_is_not():
    half = np.zeros((1, 28, 28), np.uint8)
    half[0, ::2] = 255
    assert shrunk(half, 14).all()
    half[0, 0, 0] = 254
    assert shrunk(half, 14)[0].tolist() == [0] + [1] * 195


def test_as_large_as_it_comes_it_is_a_threshold():
    assert (shrunk(GRAY, 28) == (GRAY >= 128).reshape(3, -1)).all()


@pytest.mark.parametrize("packed", [False, True])
def test_the_published_file_is_read_packed_or_not(tmp_path, packed):
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(gzip.compress(idx(GRAY)) if packed else idx(GRAY))
    X, y = mnist(path)
    assert is_published(path)
    assert (X == shrunk(GRAY, 17)).all()
    assert y is None


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (b"", "this is no file of MNIST's pictures"),
        (b"0,1\n1,0\n", "this is no file of MNIST's pictures"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 2]), "says what digits show; pass the pictures"),
        (idx(GRAY)[:-1], "3 pictures take 2368 bytes, but it has 2367"),
        (idx(GRAY) + b"0", "but it has 2369"),
        (idx(GRAY)[:9], "pictures are"),
        (idx(GRAY[:, :20, :20]), "its pictures are 20 × 20"),
        (idx(GRAY[:0]), "0 pictures take 16 bytes"),
        (gzip.compress(idx(GRAY))[:-20], "cut short or damaged"),
        (b"\x1f\x8b" + bytes(50), "cut short or damaged"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, held, message):
    path = tmp_path / "digits"
    path.write_bytes(held)
    with pytest.raises(ValueError, match=message) as refused:
        mnist(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("side", [0, 29, 2.5])
def test_impossible_sizes_are_refused(side):
    with pytest.raises((ValueError, TypeError), match="side"):
        mnist(side=side)


def test_the_test_digits_of_openml_are_the_last_ten_thousand(monkeypatch):
    class Table:
        data = np.zeros((10_002, 784))
        target = np.array(["9", "9", *(str(n % 10) for n in range(10_000))], object)

    Table.data[2] = 255
    asked = {}
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda name, **how: asked.update(how, name=name) or Table)
    X, y = mnist(data_home="somewhere")
    assert X.shape == (10_000, 289)
    assert X[0].all()
    assert not X[1:].any()
    assert y[:3].tolist() == [0, 1, 2]
    assert (asked["name"], asked["data_home"]) == ("mnist_784", "somewhere")


def test_without_a_network_it_is_said_what_to_do(monkeypatch):
    def fetch(*_, **__):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(OSError, match=r"could not be fetched from OpenML .*pass the file t10k-images-idx3-ubyte\.gz"):
        mnist()
