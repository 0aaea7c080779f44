"""
Fill in missing answers
=======================

Customers who left questions blank. Categories and numbers become columns of 0 and 1, blank answers unknown cells;
atoms are learned from the known cells, and predict the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import bitatoms as ba

frame = ba.datasets.customers()  # a dict of columns; a data frame works, too
table = ba.encode(frame)
print(ba.Encoding.of(table))
print(f"{np.isnan(table.to_dense(float)).mean():.1%} of the cells are unknown.")

# %%
# To see how well it works, more answers are hidden: one in five of the household types that are known.

rng = np.random.default_rng(0)
known = [row for row, answer in enumerate(frame["household"]) if answer is not None]
hidden = rng.choice(known, len(known) // 5, replace=False)
asked = frame | {"household": [None if row in set(hidden) else answer for row, answer in enumerate(frame["household"])]}
model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(ba.encode(asked))
encoding = ba.Encoding.of(ba.encode(asked))
filled = encoding.decode(model.complete(encoding.apply(asked)))["household"]

# %%
# One answer per question is filled in. It is right more often than the most frequent answer.

truth = [frame["household"][row] for row in hidden]
answers = sorted(set(truth))
right = np.mean([filled[row] == answer for row, answer in zip(hidden, truth, strict=True)])
frequent = max(truth.count(answer) for answer in answers) / len(truth)
print(f"{right:.0%} of {len(hidden)} hidden answers are right, with the most frequent answer {frequent:.0%}")

counts = np.zeros((len(answers), len(answers)), int)
for row, answer in zip(hidden, truth, strict=True):
    counts[answers.index(answer), answers.index(filled[row])] += 1
fig, ax = plt.subplots(figsize=(4.6, 4), layout="constrained")
ax.imshow(counts, cmap="Blues")
for i, j in np.ndindex(counts.shape):
    ax.text(j, i, counts[i, j], ha="center", va="center", color="white" if counts[i, j] > counts.max() / 2 else "black")
ax.set_xticks(range(len(answers)), answers, rotation=30)
ax.set_yticks(range(len(answers)), answers)
ax.set(xlabel="filled in", ylabel="hidden answer")

# %%
# :doc:`/tutorials/missing` compares atoms with other ways to fill in cells, and
# :doc:`/tutorials/tables-of-categories` describes the encoding.
