whatis("JupyterLab and its kernel")
prepend_path("PATH", "/opt/jupyter/bin")
