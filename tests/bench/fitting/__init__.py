"""Fit the figures of a calibration profile on real sessions, and hold them against sessions that the fit never saw.

Two sources, each for what it knows best. What a text comes to is learnt from `ctok`, which counts Claude's tokens
offline (Python 3.12 and newer): every token of o200k_base has a class (its kind of letters, its length, whether a blank
leads) and a count of its own as it stands alone, and a ridge regression finds what these are worth (`weights`). What
stands around texts is learnt from recorded usage: the steps between two requests, less their texts, by least absolute
deviations (`frames`).

    make accuracy                             prints the errors by model, held out by session and by repository
    python -m tests.bench.fitting CORPUS      the same, in an environment that has ctok and numpy
"""
