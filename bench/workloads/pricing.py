"""What a line of a ticket costs: thirteen correlated measures from six draws, in cents.

TPC-DS: quantity 1 to 100; wholesale cost 1.00 to 100.00; list price up to twice that; sales price a discount of 0 to
100 % below; one line in five with a coupon of 0 to 100 % of the price; tax 0 to 9 %. All percentages are whole, and
products are cut, not rounded, to cents, as dsdgen does. So are two oddities kept: `ss_ext_discount_amt` repeats the
coupon, and tax is on what is paid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icebench.bench.workloads.draws import Int32s, Int64s, below, words


class Prices(NamedTuple):
    """Measures of store_sales, by name without the `ss_` prefix; all but `quantity` in cents."""

    quantity: Int32s
    wholesale_cost: Int32s
    list_price: Int32s
    sales_price: Int32s
    ext_discount_amt: Int32s
    ext_sales_price: Int32s
    ext_wholesale_cost: Int32s
    ext_list_price: Int32s
    ext_tax: Int32s
    coupon_amt: Int32s
    net_paid: Int32s
    net_paid_inc_tax: Int32s
    net_profit: Int32s


def prices(seed: int, rows: Int64s) -> Prices:
    """The measures of rows, given by their ids. The largest product is 2 * 10**8, so 32 bits do."""
    word = words(seed, "store_sales.price", rows)
    quantity = 1 + below(word, 100, shift=43, bits=21)
    markup = below(word, 101, shift=22, bits=21)
    discount = below(word, 101, shift=1, bits=21)
    word = words(seed, "store_sales.payment", rows)
    coupon = below(word, 101, shift=43, bits=21)
    has_coupon = below(word, 100, shift=22, bits=21) < 20
    tax = below(word, 10, shift=1, bits=21)
    wholesale_cost = 100 + below(words(seed, "store_sales.cost", rows), 9901)

    list_price = wholesale_cost * (100 + markup) // np.int32(100)
    sales_price = list_price * (100 - discount) // np.int32(100)
    ext_sales_price = sales_price * quantity
    ext_wholesale_cost = wholesale_cost * quantity
    coupon_amt = ext_sales_price * (coupon * has_coupon) // np.int32(100)
    net_paid = ext_sales_price - coupon_amt
    ext_tax = net_paid * tax // np.int32(100)
    return Prices(
        quantity=quantity,
        wholesale_cost=wholesale_cost,
        list_price=list_price,
        sales_price=sales_price,
        ext_discount_amt=coupon_amt,
        ext_sales_price=ext_sales_price,
        ext_wholesale_cost=ext_wholesale_cost,
        ext_list_price=list_price * quantity,
        ext_tax=ext_tax,
        coupon_amt=coupon_amt,
        net_paid=net_paid,
        net_paid_inc_tax=net_paid + ext_tax,
        net_profit=net_paid - ext_wholesale_cost,
    )
