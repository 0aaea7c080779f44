"""
XOR and OR
==========

Under OR, a cell is 1 if any atom of its row has it. Under XOR, it is 1 if an odd number of them do: where two atoms
overlap, they cancel. Which algebra fits depends on the table.
"""

import matplotlib.pyplot as plt
import numpy as np

import bitatoms as ba

atoms = np.zeros((2, 12), np.uint8)
atoms[0, 1:8] = atoms[1, 5:11] = 1
codes = np.array([[1, 0], [0, 1], [1, 1]], np.uint8)
counts = codes @ atoms
fig, axes = plt.subplots(1, 3, figsize=(10, 1.9), layout="constrained")
for ax, (title, image) in zip(axes, {"two atoms": atoms, "OR": counts > 0, "XOR": counts % 2}.items(), strict=True):
    ax.imshow(image, cmap="gray_r", interpolation="none")
    ax.set(title=title, xticks=[])
    ax.set_yticks(range(len(image)), ["a", "b"] if len(image) == 2 else ["a", "b", "a and b"])

# %%
# Tables made with each algebra, and described with each. ``algebra="auto"``, the default, tries both and keeps OR,
# which is easier to read, unless XOR is more than 5 % shorter.

print("bits per row            described by OR   by XOR   without atoms")
for algebra in ("or", "xor"):
    X = ba.datasets.planted(500, 60, 6, algebra=algebra, code_density=0.3, random_state=0).X
    bits = [ba.factorize(X, algebra=name, random_state=0).codelength.total / len(X) for name in ("or", "xor")]
    print(f"made by {algebra.upper():<3}{bits[0]:28.1f}{bits[1]:9.1f}{ba.codelength(X).total / len(X):16.1f}")

# %%
# :doc:`/how-it-works/xor-and-or` compares both on 12 real and planted tables.
