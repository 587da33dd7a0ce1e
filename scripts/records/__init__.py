"""The parts of scripts/record: collect reads what was measured, claims looks at it, page, tables and
pictures show it, publish puts it where the docs are."""
