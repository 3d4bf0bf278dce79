"""Job history and GPU metrics from any server that speaks the Prometheus HTTP API.

================  ====================================================================
``client``        the API: ranges chunk by chunk, instants, names and label values
``ranges``        the moments a range asks for, on a grid and in chunks
``selectors``     selectors built from values, escaped
``samples``       one series of samples
``exchange``      one request with its retries
``retries``       when to try again, and after how long
``answers``       a body as series
``refusals``      a failed answer as one of our errors
``credentials``   secrets: where they come from, and that they stay out of messages
``flavours``      Prometheus, Thanos, Mimir, VictoriaMetrics
================  ====================================================================
"""
