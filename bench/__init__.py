"""Measurements, each beside what could be had without this project. `make bench` runs all."""
