"""Unknown cells: what predicts them, how predictions are weighed, and cells that are hidden to judge them."""
