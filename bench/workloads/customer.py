"""The dimension customer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.workloads import vocabulary
from bench.workloads.arrays import BatchBuilder, business_keys, chosen, digit_words, flags, null_masks
from bench.workloads.draws import Int64s, draw
from bench.workloads.sales_calendar import date_key
from bench.workloads.scaling import row_count

_NULLS_PER_TEN_THOUSAND = 700
_TODAY = date_key(date(2003, 1, 8))
_FIRST_BIRTHDAY = date(1924, 1, 1)
_LAST_BIRTHDAY = date(1992, 12, 31)
_CURRENT_KEYS = {
    "c_current_cdemo_sk": "customer_demographics",
    "c_current_hdemo_sk": "household_demographics",
    "c_current_addr_sk": "customer_address",
}


@dataclass(frozen=True, kw_only=True)
class Customer:
    """The table customer. `seed`: any integer; `scale`: scale factor, for its foreign keys; `schema`: its columns."""

    seed: int
    scale: float
    schema: pa.Schema

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive."""
        key = np.arange(start, stop) + 1
        masks = null_masks(self.seed, "customer", key, _NULLS_PER_TEN_THOUSAND)
        builder = BatchBuilder(self.schema, stop - start, masks)
        builder.integers("c_customer_sk", key)
        builder.strings("c_customer_id", business_keys(key))
        for column, table in _CURRENT_KEYS.items():
            builder.integers(column, 1 + draw(self.seed, f"customer.{column}", key, row_count(table, self.scale)))
        first_sale = _TODAY - draw(self.seed, "customer.c_first_sales_date_sk", key, 3651)
        builder.integers("c_first_sales_date_sk", first_sale)
        builder.integers("c_first_shipto_date_sk", first_sale + 30)
        builder.integers("c_last_review_date_sk", _TODAY - draw(self.seed, "customer.c_last_review", key, 366))
        builder.strings("c_preferred_cust_flag", flags(draw(self.seed, "customer.c_preferred", key, 2) == 1))
        self._put_birth(builder, key)
        self._put_names(builder, key)
        return builder.finish()

    def _put_birth(self, builder: BatchBuilder, key: Int64s) -> None:
        span = (_LAST_BIRTHDAY - _FIRST_BIRTHDAY).days + 1
        day = np.datetime64(_FIRST_BIRTHDAY) + draw(self.seed, "customer.birth", key, span).astype("timedelta64[D]")
        month = day.astype("datetime64[M]")
        builder.integers("c_birth_day", (day - month.astype("datetime64[D]")).astype(np.int64) + 1)
        builder.integers("c_birth_month", month.astype(np.int64) % 12 + 1)
        builder.integers("c_birth_year", day.astype("datetime64[Y]").astype(np.int64) + 1970)
        country = draw(self.seed, "customer.c_birth_country", key, len(vocabulary.COUNTRIES))
        builder.strings("c_birth_country", chosen(vocabulary.COUNTRIES, country))

    def _put_names(self, builder: BatchBuilder, key: Int64s) -> None:
        salutation = draw(self.seed, "customer.c_salutation", key, len(vocabulary.SALUTATIONS))
        builder.strings("c_salutation", chosen(vocabulary.SALUTATIONS, salutation))
        first_index = draw(self.seed, "customer.c_first_name", key, len(vocabulary.FIRST_NAMES))
        last_index = draw(self.seed, "customer.c_last_name", key, len(vocabulary.LAST_NAMES))
        first = chosen(vocabulary.FIRST_NAMES, first_index)
        last = chosen(vocabulary.LAST_NAMES, last_index)
        builder.strings("c_first_name", first)
        builder.strings("c_last_name", last)
        builder.strings("c_login", chosen(("",), np.zeros(len(key), np.int32)))
        host = digit_words(vocabulary.SYLLABLES, 1 + draw(self.seed, "customer.host", key, 99_999))
        address = pc.binary_join_element_wise(pc.binary_join_element_wise(first, last, "."), host, "@")
        builder.strings("c_email_address", pc.binary_join_element_wise(address, "org", "."))
