from decimal import ROUND_DOWN, Decimal

import numpy as np

from icebench.bench.workloads.pricing import prices

CENT = Decimal("0.01")


def test_measures_follow_from_each_other_exactly() -> None:
    made = prices(1, np.arange(20_000))
    quantity, coupon = made.quantity, made.coupon_amt
    assert (made.ext_sales_price == made.sales_price * quantity).all()
    assert (made.ext_wholesale_cost == made.wholesale_cost * quantity).all()
    assert (made.ext_list_price == made.list_price * quantity).all()
    assert (made.net_paid == made.ext_sales_price - coupon).all()
    assert (made.net_paid_inc_tax == made.net_paid + made.ext_tax).all()
    assert (made.net_profit == made.net_paid - made.ext_wholesale_cost).all()
    assert (made.ext_discount_amt == coupon).all()


def test_percentages_are_whole_and_products_are_cut_to_cents() -> None:
    """Each price is the decimal product of the one before and some whole percentage, rounded down."""
    made = prices(2, np.arange(500))
    for row in range(500):
        cost, list_price, sales_price, paid, tax = (
            Decimal(int(column[row])) * CENT
            for column in (made.wholesale_cost, made.list_price, made.sales_price, made.net_paid, made.ext_tax)
        )
        assert list_price in {(cost * (100 + p) * CENT).quantize(CENT, ROUND_DOWN) for p in range(101)}
        assert sales_price in {(list_price * (100 - p) * CENT).quantize(CENT, ROUND_DOWN) for p in range(101)}
        assert tax in {(paid * p * CENT).quantize(CENT, ROUND_DOWN) for p in range(10)}


def test_ranges_are_those_of_the_specification_and_fit_decimal_7_2() -> None:
    made = prices(3, np.arange(300_000))
    assert (made.quantity.min(), made.quantity.max()) == (1, 100)
    assert (made.wholesale_cost.min(), made.wholesale_cost.max()) == (100, 10_000)
    assert abs((made.coupon_amt > 0).mean() - 0.196) < 0.005
    for column in made[1:]:
        assert np.abs(column).max() < 10**7
        assert column.dtype == np.int32
    assert made.net_profit.min() < 0 < made.net_profit.max()
    assert min(column.min() for column in made[:-1]) >= 0


def test_largest_values_do_not_overflow() -> None:
    # The extreme of each draw: 100 items at 100.00, marked up by 100 %, all paid by a coupon.
    assert 100 * (10_000 * 200 // 100) * 100 < 2**31
