"""What a mode changes: forward mode, anomaly detection, hooks on saved values, inference, and functional writes."""
