"""The time machine: `simulate`, `next` and `plan`, on the same decisions that a server makes."""
