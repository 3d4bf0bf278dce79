"""Job history and GPU metrics from any server that speaks the Prometheus HTTP API."""
