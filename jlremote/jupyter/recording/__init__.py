"""The program that runs beside a Jupyter server and records what its kernels publish.

Read `recorder_program` first. It subscribes to each `recorded_kernel`, asks the `recorded_server`
for the names of notebooks and writes to the `store`. They run on the host, with the server's
Python: they import nothing else of ours, and use no syntax newer than Python 3.6.
"""
