"""Landing: deliveries in, closed UTC days of typed Parquet out.

`loader.land` writes the days of a window, `touched.touched_days` tells which days new files ask for. Kept
free of imports, because connectors need the schemas and landing needs the connectors.
"""
