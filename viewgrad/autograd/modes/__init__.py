"""The implementation of modes: forward mode, anomaly detection, saved-tensor hooks, inference and functionalization."""
