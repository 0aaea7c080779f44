"""MNIST from OpenML and from files: exact downsampling, and errors for corrupt files."""

import gzip
from urllib.error import URLError

import numpy as np
import pytest

from bitatoms.datasets import mnist
from bitatoms.datasets.mnist_digits import downsample
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
    assert (downsample(GRAY, 28) == (GRAY >= 128).reshape(3, -1)).all()


def labels_idx(labels):
    """Return the contents of an IDX file of labels."""
    return bytes([0, 0, 8, 1]) + len(labels).to_bytes(4, "big") + bytes(labels)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_files_are_read_compressed_or_not(tmp_path, compress):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(compress(idx(GRAY)))
    labels.write_bytes(compress(labels_idx([7, 2, 9])))
    X, y = mnist(images)
    assert (X == downsample(GRAY, 17)).all()
    assert y is None
    X, y = mnist(images, labels=labels, side=28)
    assert X.shape == (3, 784)
    assert y.tolist() == [7, 2, 9]
    assert y.dtype == np.int64


LABELS = labels_idx([7, 2, 9])


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (b"", None, "not a file of images of MNIST; pass one such as t10k-images-idx3-ubyte.gz"),
        (labels_idx([7, 2]), None, "not a file of images of MNIST"),
        (idx(GRAY)[:-1], None, "truncated or corrupt"),
        (idx(GRAY)[:9], None, "truncated or corrupt"),
        (idx(GRAY[:, :20, :20]), None, "the images have 20 × 20"),
        (idx(GRAY[:0]), None, "truncated or corrupt"),
        (gzip.compress(idx(GRAY), mtime=0)[:-20], None, "truncated or corrupt"),
        (idx(GRAY), b"", "not a file of labels of MNIST"),
        (idx(GRAY), idx(GRAY), "not a file of labels of MNIST"),
        (idx(GRAY), LABELS[:-1], "truncated or corrupt"),
        (idx(GRAY), labels_idx([7, 2]), "2 labels for 3 images"),
    ],
)
def test_invalid_files_raise(tmp_path, images, labels, message):
    paths = [tmp_path / "images", *([] if labels is None else [tmp_path / "labels"])]
    for path, content in zip(paths, (images, labels), strict=False):
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        mnist(paths[0], labels=paths[1] if paths[1:] else None)
    assert str(paths[-1]) in str(caught.value)


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
