"""The heading `Host`: gpus, doctor, disconnect and forget."""
