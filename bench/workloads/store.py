"""The dimension store: where things are sold, with its revisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.workloads import vocabulary
from bench.workloads.arrays import BatchBuilder, business_keys, chosen, digit_words, null_masks, numbered
from bench.workloads.draws import Int32s, Int64s, draw
from bench.workloads.item import descriptions
from bench.workloads.revisions import origin_of, validity_of
from bench.workloads.sales_calendar import date_key

_NULLS_PER_TEN_THOUSAND = 100
_CLOSED_PERCENT = 30


@dataclass(frozen=True, kw_only=True)
class Store:
    """The table store. `seed`: any integer; `schema`: its columns."""

    seed: int
    schema: pa.Schema

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive."""
        key = np.arange(start, stop) + 1
        masks = null_masks(self.seed, "store", key, _NULLS_PER_TEN_THOUSAND)
        builder = BatchBuilder(self.schema, stop - start, masks)
        validity = validity_of(key)
        builder.integers("s_store_sk", key)
        builder.strings("s_store_id", business_keys(validity.first_row))
        builder.integers("s_rec_start_date", validity.begin)
        builder.integers("s_rec_end_date", validity.end, validity.has_end)
        self._put_business(builder, key)
        self._put_people(builder, key)
        self._put_address(builder, key)
        return builder.finish()

    def _draw(self, column: str, key: Int64s, bound: int) -> Int32s:
        return draw(self.seed, f"store.{column}", origin_of(self.seed, f"store.{column}", key), bound)

    def _word_of(self, column: str, key: Int64s, known: Sequence[str]) -> pa.StringArray:
        return chosen(known, self._draw(column, key, len(known)))

    def _put_business(self, builder: BatchBuilder, key: Int64s) -> None:
        closed = self._draw("s_closed_date_sk", key, 100) < _CLOSED_PERCENT
        days_open = self._draw("s_closed_date_sk.days", key, 500)
        builder.integers("s_closed_date_sk", date_key(date(1998, 1, 1)) + days_open, closed)
        builder.strings("s_store_name", digit_words(vocabulary.SYLLABLES, key))
        builder.integers("s_number_employees", 200 + self._draw("s_number_employees", key, 101))
        builder.integers("s_floor_space", 5_000_000 + self._draw("s_floor_space", key, 5_000_001))
        builder.strings("s_hours", self._word_of("s_hours", key, vocabulary.STORE_HOURS))
        builder.integers("s_market_id", 1 + self._draw("s_market_id", key, 10))
        for name in ("s_geography_class", "s_division_name", "s_company_name"):
            builder.strings(name, chosen(("Unknown",), np.zeros(len(key), np.int32)))
        for name in ("s_division_id", "s_company_id"):
            builder.integers(name, np.ones(len(key), np.int32))
        builder.decimals("s_tax_percentage", self._draw("s_tax_percentage", key, 12))

    def _put_people(self, builder: BatchBuilder, key: Int64s) -> None:
        for column in ("s_manager", "s_market_manager"):
            first = self._word_of(f"{column}.first", key, vocabulary.FIRST_NAMES)
            last = self._word_of(f"{column}.last", key, vocabulary.LAST_NAMES)
            builder.strings(column, pc.binary_join_element_wise(first, last, " "))
        origin = origin_of(self.seed, "store.s_market_desc", key)
        builder.strings("s_market_desc", descriptions(self.seed, "store", origin, 15))

    def _put_address(self, builder: BatchBuilder, key: Int64s) -> None:
        builder.strings("s_street_number", numbered(1 + self._draw("s_street_number", key, 1000)))
        first = self._word_of("s_street_name.first", key, vocabulary.STREETS)
        second = self._word_of("s_street_name.second", key, vocabulary.STREETS)
        builder.strings("s_street_name", pc.binary_join_element_wise(first, second, " "))
        builder.strings("s_street_type", self._word_of("s_street_type", key, vocabulary.STREET_TYPES))
        builder.strings("s_suite_number", numbered(10 * self._draw("s_suite_number", key, 50), "Suite "))
        builder.strings("s_city", self._word_of("s_city", key, vocabulary.CITIES))
        county = self._word_of("s_county", key, vocabulary.LAST_NAMES)
        builder.strings("s_county", pc.binary_join_element_wise(county, "County", " "))
        state = self._draw("s_state", key, len(vocabulary.STATES))
        builder.strings("s_state", chosen(vocabulary.STATES, state))
        builder.decimals("s_gmt_offset", np.array(vocabulary.STATE_OFFSETS)[state] * 100)
        zip_code = 100_000 + self._draw("s_zip", key, 100_000)
        builder.strings("s_zip", pc.utf8_slice_codeunits(numbered(zip_code), 1))
        builder.strings("s_country", chosen(("United States",), np.zeros(len(key), np.int32)))
