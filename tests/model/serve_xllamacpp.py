"""Serves a model with `xllamacpp` until it is ended: python serve_xllamacpp.py MODEL PORT WINDOW_TOKENS."""

import sys
import time

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = int(sys.argv[3])
params.n_parallel = 1
params.sampling.temp = 0.0  # the same answer each time
params.offline = True
params.fit_params = False
server = xllamacpp.Server(params)
while True:
    time.sleep(1)
