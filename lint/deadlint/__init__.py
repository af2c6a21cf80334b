"""Find and repair timeout and cancellation faults in Python data and geospatial pipelines."""

__version__ = "0.1.0"
