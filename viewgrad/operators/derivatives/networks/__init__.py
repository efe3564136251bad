"""The tables of neural networks: layers, activation functions and losses."""

from . import (
    activations,
    convolution,
    dropout,
    embedding,
    losses,
    normalization,
    pooling,
)
