"""Questions about any one metric; the trees for fine-tuning and reinforcement learning ask them of many."""
