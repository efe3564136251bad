"""Watching a program run, and writing down what it does as a graph."""
