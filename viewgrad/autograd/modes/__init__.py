"""The effects of each mode: forward mode, anomaly detection, hooks on saved values, inference, and functional writes.

"""
