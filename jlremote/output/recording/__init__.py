"""The program that runs beside a Jupyter server and records what its kernels publish.

Read `recorder_program` first. It subscribes to each `recorded_kernel`, asks the `recorded_server`
for the names of notebooks, looks in `cells` for the cell of a request, and writes to the `store`.
They run on the host, with the server's Python: `output.recorder` makes one text of them, in the
order of `MODULES`. They import nothing else of ours, and use no syntax newer than Python 3.6.
"""
