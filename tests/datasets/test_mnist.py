"""MNIST from OpenML and from files: exact downsampling, and errors for corrupt files."""

import gzip
from urllib.error import URLError

import numpy as np
import pytest

from bitatoms.datasets import mnist
from bitatoms.datasets.mnist_digits import downsample, is_idx_file
from support.mnist import idx

GRAY = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)


@pytest.mark.parametrize("side", [1, 5, 17])
def test_a_pixel_is_one_where_the_mean_ink_over_its_area_is_at_least_half(side):
    """Each pixel is repeated ``side`` times in both directions, so that areas are whole numbers of pixels."""
    fine = np.repeat(np.repeat(GRAY.astype(np.int64), side, axis=1), side, axis=2)
    ink = fine.reshape(3, side, 28, side, 28).sum(axis=(2, 4))
    assert (downsample(GRAY, side) == (2 * ink >= 255 * 28 * 28).reshape(3, -1)).all()


def test_exactly_half_is_a_one():
    half = np.zeros((1, 28, 28), np.uint8)
    half[0, ::2] = 255
    assert downsample(half, 14).all()
    half[0, 0, 0] = 254
    assert downsample(half, 14)[0].tolist() == [0] + [1] * 195


def test_original_size_is_a_threshold():
    assert (downsample(GRAY, 28) == (GRAY >= 128).reshape(3, -1)).all()


@pytest.mark.parametrize("compressed", [False, True])
def test_file_is_read_compressed_or_not(tmp_path, compressed):
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(gzip.compress(idx(GRAY), mtime=0) if compressed else idx(GRAY))
    X, y = mnist(path)
    assert is_idx_file(path)
    assert (X == downsample(GRAY, 17)).all()
    assert y is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an image file of MNIST"),
        (b"0,1\n1,0\n", "not an image file of MNIST"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 2]), "the file contains labels; pass the images"),
        (idx(GRAY)[:-1], "3 images take 2368 bytes, but the file has 2367"),
        (idx(GRAY) + b"0", "but the file has 2369"),
        (idx(GRAY)[:9], "the images have"),
        (idx(GRAY[:, :20, :20]), "the images have 20 × 20"),
        (idx(GRAY[:0]), "0 images take 16 bytes"),
        (gzip.compress(idx(GRAY), mtime=0)[:-20], "truncated or corrupt"),
        (b"\x1f\x8b" + bytes(50), "truncated or corrupt"),
    ],
)
def test_invalid_files_raise(tmp_path, content, message):
    path = tmp_path / "digits"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        mnist(path)
    assert str(path) in str(caught.value)


def labels_idx(labels):
    """Return the contents of an IDX file of labels."""
    return bytes([0, 0, 8, 1]) + len(labels).to_bytes(4, "big") + bytes(labels)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_labels_are_read_from_their_file(tmp_path, compress):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(idx(GRAY))
    labels.write_bytes(compress(labels_idx([7, 2, 9])))
    X, y = mnist(images, labels=labels, side=28)
    assert X.shape == (3, 784)
    assert y.tolist() == [7, 2, 9]
    assert y.dtype == np.int64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a label file of MNIST"),
        (idx(GRAY), "not a label file of MNIST"),
        (labels_idx([7, 2, 9])[:6], "truncated or corrupt"),
        (labels_idx([7, 2, 9])[:-1], "truncated or corrupt"),
        (labels_idx([7, 2]), "2 labels, but there are 3 images"),
    ],
)
def test_invalid_label_files_raise(tmp_path, content, message):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(idx(GRAY))
    labels.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        mnist(images, labels=labels)
    assert str(labels) in str(caught.value)


def test_openml_test_set_is_the_last_rows(monkeypatch):
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


def test_missing_network_raises(monkeypatch):
    def fetch(*_, **__):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(OSError, match=r"could not be fetched from OpenML .*pass the file t10k-images-idx3-ubyte\.gz"):
        mnist()
