"""Kernels of our own, to run, to measure and to copy: a folder for each language, functions of arrays in each."""
