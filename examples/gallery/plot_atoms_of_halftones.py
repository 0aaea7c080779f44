"""
The atoms of a halftone picture
===============================

A halftone prints grey as black dots. Cut into blocks of 16 × 16 pixels, the same dots recur in thousands of blocks:
each block is a row of a table, and the atoms of the table are the patterns of dots.
"""

import matplotlib.pyplot as plt

import bitatoms as ba

BLOCK = (16, 16)
picture = ba.datasets.halftone()  # a photograph that comes with scikit-learn, as black dots
X = ba.datasets.cut_blocks(picture, BLOCK)
result = ba.factorize(X, algebra="or", random_state=0)
print(result.summary())

# %%
# Codes and atoms together give the picture back, apart from the wrong pixels.

product = ba.datasets.stitch_blocks(result.reconstruct(), picture.shape, BLOCK)
part = (slice(64, 176), slice(288, 512))
fig, axes = plt.subplots(1, 3, figsize=(11, 2.6), layout="constrained")
wrong = product != picture
for ax, image, title in zip(
    axes, (picture, product, wrong), ("part of it", "codes × atoms", "wrong pixels"), strict=True
):
    ax.imshow(image[part], cmap="gray_r", interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[])
print(f"{wrong.mean():.1%} of the pixels are wrong.")

# %%
# The 96 atoms that save most bits. A bias is a pattern that all blocks start from; atoms change it.

atoms = result.atoms.to_dense() ^ result.bias
fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ba.plots.mosaic(atoms[:96], BLOCK, columns=16, ax=ax)
ax.set_title(f"96 of {len(atoms)} atoms")

# %%
# ``bitatoms denoise`` uses such atoms to remove noise from pictures; see :doc:`/gallery/plot_denoise`.
