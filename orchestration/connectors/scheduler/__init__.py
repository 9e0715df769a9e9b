"""What the schedulers ran, and what they could not run on."""
