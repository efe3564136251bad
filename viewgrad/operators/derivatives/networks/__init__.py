"""The derivatives of neural network operators: layers, activation functions and losses."""

from . import (
    activations,
    convolution,
    dropout,
    embedding,
    losses,
    normalization,
    pooling,
)
