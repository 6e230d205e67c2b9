"""Small made runs of many kinds, each with one failure, and what an expert would and would not advise."""
