"""PNG and TIFF images: black-and-white ones as they are, others by a threshold; 1 is black, as in PBM."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.columns.table import Picture
from support.files import assert_read_error
from support.strategies import random_bits

pytest.importorskip("PIL")
from PIL import Image


@pytest.mark.parametrize("extension", ["png", "tiff"])
def test_blocks_are_cut_and_put_back_together(tmp_path, extension):
    bits = random_bits(0, 13, 21, 0.5)
    path = tmp_path / f"picture.{extension}"
    ba.write(bits, path)
    blocks = ba.read(path, blocks=(4, 5))
    assert blocks.picture == Picture((4, 5), (13, 21))
    assert np.array_equal(blocks.to_dense(), ba.datasets.cut_blocks(bits, (4, 5)))
    ba.write(blocks, path)
    assert np.array_equal(ba.read(path).to_dense(), bits)
    assert_read_error(path, "1 rows of 100000000000000 columns", blocks=(10**7, 10**7))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_images_of_two_colors_are_read_in_any_mode(tmp_path, mode):
    bits = random_bits(1, 6, 7, 0.5)
    image = Image.fromarray(np.where(bits, 0, 255).astype(np.uint8))
    if mode == "I;16":
        image = Image.fromarray(np.where(bits, 0, 65535).astype(np.uint16))
    image.convert(mode).save(tmp_path / "picture.png")
    assert np.array_equal(ba.read(tmp_path / "picture.png").to_dense(), bits)


@pytest.mark.parametrize(("dtype", "white"), [(np.uint8, 255), (np.uint16, 65535)])
def test_gray_images_need_a_threshold(tmp_path, dtype, white):
    gray = np.array([[0, white // 4, white // 2], [white - white // 4, white - 1, white]], dtype)
    path = tmp_path / "gray.png"
    Image.fromarray(gray).save(path)
    where = f"{white - white // 4} of {white} at row 0, column 1"
    assert_read_error(path, "gray or color image", where, f"binarize={white // 2}")
    assert ba.read(path, binarize=white // 2).to_dense().tolist() == [[1, 1, 1], [0, 0, 0]]
