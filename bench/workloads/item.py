"""The dimension item: what is sold, with its revisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.workloads import vocabulary
from bench.workloads.arrays import (
    BatchBuilder,
    business_keys,
    chosen,
    digit_words,
    fixed_texts,
    null_masks,
    numbered,
    texts,
)
from bench.workloads.draws import Int32s, Int64s, below, draw, words
from bench.workloads.revisions import origin_of, validity_of

_NULLS_PER_TEN_THOUSAND = 50

# Skewed whole numbers, as dsdgen has them: bounds of ranges, and each range's weight in percent; uniform inside.
_PRICES_CENTS = ((9, 500, 60), (500, 1_000, 30), (1_000, 10_000, 10))
_MANUFACTURERS = ((1, 301, 54), (301, 601, 29), (601, 1_001, 17))
_MANAGERS = ((1, 31, 54), (31, 61, 32), (61, 101, 14))
_CLASSES_OF_FEW = 4
_LAST_CATEGORY_OF_FEW = 5
_CATEGORIES_WITH_SIZES = 4


def _ranged(seed: int, stream: str, rows: Int64s, ranges: tuple[tuple[int, int, int], ...]) -> Int32s:
    """Whole numbers, by range and uniform inside."""
    word = words(seed, stream, rows)
    low, high, weight = (np.array(part) for part in zip(*ranges, strict=True))
    which = np.repeat(np.arange(len(ranges)), weight)[below(word, 100)]
    within = ((word & np.uint64(0xFFFFFFFF)) * (high - low)[which].astype(np.uint64)) >> np.uint64(32)
    return (low[which] + within.astype(np.int64)).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class Item:
    """The table item. `seed`: any integer; `schema`: its columns."""

    seed: int
    schema: pa.Schema

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive."""
        key = np.arange(start, stop) + 1
        masks = null_masks(self.seed, "item", key, _NULLS_PER_TEN_THOUSAND)
        builder = BatchBuilder(self.schema, stop - start, masks)
        validity = validity_of(key)
        builder.integers("i_item_sk", key)
        builder.strings("i_item_id", business_keys(validity.first_row))
        builder.integers("i_rec_start_date", validity.begin)
        builder.integers("i_rec_end_date", validity.end, validity.has_end)
        self._put_prices(builder, key)
        self._put_hierarchy(builder, key)
        self._put_makers(builder, key)
        self._put_descriptions(builder, key)
        return builder.finish()

    def _origin(self, column: str, key: Int64s) -> Int64s:
        return origin_of(self.seed, f"item.{column}", key)

    def _word_of(self, column: str, key: Int64s, words_known: tuple[str, ...] | list[str]) -> pa.StringArray:
        index = draw(self.seed, f"item.{column}", self._origin(column, key), len(words_known))
        return chosen(words_known, index)

    def _put_prices(self, builder: BatchBuilder, key: Int64s) -> None:
        def price(of: Int64s) -> Int32s:
            return _ranged(self.seed, "item.i_current_price", of, _PRICES_CENTS)

        builder.decimals("i_current_price", price(self._origin("i_current_price", key)))
        # Cost is 30 to 90 % of the price at the revision that set it; a later revision may keep it under a new price.
        origin = self._origin("i_wholesale_cost", key)
        percent = 30 + draw(self.seed, "item.i_wholesale_cost", origin, 61)
        builder.decimals("i_wholesale_cost", price(origin) * percent // np.int32(100))

    def _put_hierarchy(self, builder: BatchBuilder, key: Int64s) -> None:
        def category(of: Int64s) -> Int32s:
            return 1 + draw(self.seed, "item.i_category", of, len(vocabulary.CATEGORIES))

        def class_id(of: Int64s) -> Int32s:
            few = category(of) <= _LAST_CATEGORY_OF_FEW
            chance = words(self.seed, "item.i_class", of)
            return 1 + np.where(few, below(chance, _CLASSES_OF_FEW), below(chance, len(vocabulary.CLASSES)))

        own_category = category(key)
        builder.integers("i_category_id", own_category)
        builder.strings("i_category", chosen(vocabulary.CATEGORIES, own_category - 1))
        own_class = class_id(self._origin("i_class_id", key))
        builder.integers("i_class_id", own_class)
        builder.strings("i_class", chosen(vocabulary.CLASSES, own_class - 1))
        # A brand belongs to a category and class: those of the revision that set the brand.
        origin = self._origin("i_brand_id", key)
        line = 1 + origin % 10
        builder.integers("i_brand_id", (category(origin) * 1000 + class_id(origin)) * 1000 + line)
        maker = digit_words(vocabulary.BRAND_SYLLABLES, category(origin) * 100 + class_id(origin))
        builder.strings("i_brand", pc.binary_join_element_wise(maker, numbered(line), " #"))
        sized = draw(self.seed, "item.i_size", self._origin("i_size", key), len(vocabulary.SIZES))
        builder.strings("i_size", chosen(vocabulary.SIZES, np.where(own_category <= _CATEGORIES_WITH_SIZES, sized, 0)))

    def _put_makers(self, builder: BatchBuilder, key: Int64s) -> None:
        maker = _ranged(self.seed, "item.i_manufact_id", self._origin("i_manufact_id", key), _MANUFACTURERS)
        builder.integers("i_manufact_id", maker)
        builder.strings("i_manufact", digit_words(vocabulary.SYLLABLES, maker))
        builder.integers("i_manager_id", _ranged(self.seed, "item.i_manager_id", key, _MANAGERS))
        builder.strings("i_product_name", digit_words(vocabulary.SYLLABLES, key))

    def _put_descriptions(self, builder: BatchBuilder, key: Int64s) -> None:
        builder.strings("i_item_desc", descriptions(self.seed, "item", self._origin("i_item_desc", key), 30))
        places = np.arange(20, dtype=np.uint64)
        origin = self._origin("i_formulation", key)
        digit = words(self.seed, "item.i_formulation", (origin[:, np.newaxis] * 20).astype(np.uint64) + places)
        builder.strings("i_formulation", fixed_texts((ord("0") + below(digit, 10)).astype(np.uint8)))
        builder.strings("i_color", self._word_of("i_color", key, vocabulary.COLORS))
        builder.strings("i_units", self._word_of("i_units", key, vocabulary.UNITS))
        builder.strings("i_container", chosen(("Unknown",), np.zeros(len(key), np.int32)))


def descriptions(seed: int, table: str, rows: Int64s, most_words: int) -> pa.StringArray:
    """Texts of 1 to `most_words` words, any length equally likely."""
    counts = 1 + draw(seed, f"{table}.words", rows, most_words)
    place = np.arange(most_words)
    index = draw(seed, f"{table}.word", rows[:, np.newaxis] * most_words + place, len(vocabulary.DESCRIPTION_WORDS))
    spaced = [f"{word} " for word in vocabulary.DESCRIPTION_WORDS]
    joined = texts(spaced, index[place < counts[:, np.newaxis]], counts)
    return pc.utf8_rtrim_whitespace(joined)
