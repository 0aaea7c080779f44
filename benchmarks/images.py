"""Wrong pixels after denoising, compared with DUDE: a halftone, a thresholded photograph, a page of text.

``bitatoms.denoise`` knows neither the clean picture nor the noise. DUDE is told the noise, and of its context sizes
the one that is best for the clean picture is reported.

    python benchmarks/images.py --einstein einstein_image.npz --seeds 3
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import bitatoms as ba
from bitatoms.baselines import dude

NOISE = (0.01, 0.02, 0.05, 0.1)
CONTEXTS = (8, 12, 16, 20)


def photograph() -> np.ndarray:
    """Return the photograph that comes with scikit-learn, black where it is darker than the middle gray."""
    from sklearn.datasets import load_sample_image

    gray = load_sample_image("china.jpg").astype(np.int64) @ np.array([299, 587, 114]) // 1000
    return (gray < 128).astype(np.uint8)


def text() -> np.ndarray:
    """Return the license as a page of text, drawn by matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8").splitlines()
    figure = Figure(figsize=(6.4, 4.8), dpi=100)
    figure.text(0.02, 0.98, "\n".join(lines[:28]), va="top", fontsize=8, family="serif")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return (np.asarray(canvas.buffer_rgba())[..., 0] < 128).astype(np.uint8)


def einstein(path: Path) -> np.ndarray:
    """Return the halftone of the paper, from an archive with packed rows or any file that bitatoms reads."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            height, width = file["shape"]
            return np.unpackbits(file["X"], axis=1)[:height, :width]
    return ba.read(path).to_dense()


def wrong(image: np.ndarray, picture: np.ndarray) -> float:
    """Return the percentage of wrong pixels."""
    return 100 * float((image != picture).mean())


def main() -> None:
    """Print one line per picture, noise and seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einstein", type=Path, help="the halftone of the paper; by default a bundled halftone")
    parser.add_argument("--only", help="pictures, such as halftone,text")
    parser.add_argument("--noise", help="shares of flipped pixels, such as 0.01,0.05")
    parser.add_argument("--side", type=int, help="use only so many pixels of each side")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    pictures = {
        "halftone": lambda: einstein(given.einstein) if given.einstein else ba.datasets.halftone(),
        "photograph": photograph,
        "text": text,
    }
    levels = [float(level) for level in given.noise.split(",")] if given.noise else NOISE
    print("| picture | noise % | seed | DUDE % | bitatoms % | estimated noise % | repetition | atoms | CPU s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for name in given.only.split(",") if given.only else pictures:
        picture = pictures[name]()[: given.side, : given.side]
        for noise in levels:
            for seed in range(given.seeds):
                noisy = picture ^ (np.random.default_rng(seed).random(picture.shape) < noise)
                best = min(wrong(dude(noisy, size, noise=noise), picture) for size in CONTEXTS)
                start = time.process_time()
                result = ba.denoise(noisy, algebra="xor", random_state=seed, n_jobs=given.jobs)
                seconds, atoms = time.process_time() - start, "+".join(map(str, result.n_atoms))
                print(
                    f"| {name} | {100 * noise:g} | {seed} | {best:.2f} | {wrong(result.image, picture):.3f} | "
                    f"{100 * result.noise:.2f} | {result.repetition:.2f} | {atoms} | {seconds:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
