"""The modules of scripts/record: collect reads the measurements, claims checks them, page, tables and
pictures render them, publish writes them into the docs."""
