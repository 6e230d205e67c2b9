"""Looking for spikes: in windows, or in a log too short for them."""
