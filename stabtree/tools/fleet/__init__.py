"""Many runs at once: found below folders, judged in parallel, kept in a store, shown worst first."""
