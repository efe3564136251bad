"""Calls of compiled functions: signatures, tracing, verification, dispatch and execution."""
