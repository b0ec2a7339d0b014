//! One checked launch: shadow memory, race records, reports.
