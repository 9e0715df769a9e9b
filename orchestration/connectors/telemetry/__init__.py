"""What the GPUs did."""
