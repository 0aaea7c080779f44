"""
Remove noise from a picture
===========================

``bitatoms.denoise`` learns atoms from the blocks of a noisy picture itself, and flips the pixels that the other
pixels of their blocks contradict. Neither the clean picture nor the noise need be known.
"""

import matplotlib.pyplot as plt
import numpy as np

import bitatoms as ba

clean = ba.datasets.halftone()[64:176, 288:448]
noisy = clean ^ (np.random.default_rng(0).random(clean.shape) < 0.05).astype(clean.dtype)
result = ba.denoise(noisy, algebra="xor", random_state=0)
print(f"The noise is estimated as {result.noise:.1%}; {result.n_changed} pixels were changed.")
print(f"Wrong pixels: {(noisy != clean).mean():.2%} before, {(result.image != clean).mean():.2%} after.")

# %%
fig, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained")
for ax, image, title in zip(axes, (clean, noisy, result.image), ("clean", "5 % flipped", "denoised"), strict=True):
    ax.imshow(image, cmap="gray_r", interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[])

# %%
# The probability that each pixel is black shows where the result is uncertain. :doc:`/tutorials/images` states for
# which pictures this works well, and how holes are filled.

fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
shown = ax.imshow(result.probability, cmap="gray_r", vmin=0, vmax=1)
ax.set(xticks=[], yticks=[])
fig.colorbar(shown, label="probability of black")
