"""Words for the dimensions' texts.

They are this project's own; only the ten categories, the sizes and the units are those that TPC-DS queries name.
"""

from __future__ import annotations


def _listed(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(separator))


CATEGORIES = ("Women", "Men", "Children", "Shoes", "Music", "Jewelry", "Home", "Sports", "Books", "Electronics")

# The first five categories have the first four classes only, the others all sixteen.
CLASSES = _listed(
    "basics classic everyday seasonal accent custom designer essentials estate family garden luxury outdoor personal "
    "portable travel"
)

SIZES = ("N/A", "petite", "small", "medium", "large", "extra large", "economy")

UNITS = _listed(
    "Box Bunch Bundle Carton Case Cup Dozen Dram Each Gram Gross Lb N/A Ounce Oz Pallet Pound Tbl Ton Tsp Unknown"
)

COLORS = _listed(
    "amber aqua azure beige black blue bronze brown coral crimson cyan ebony emerald fuchsia gold gray green indigo "
    "ivory jade khaki lavender lemon lilac lime magenta maroon mauve mint navy ochre olive orange peach pearl pink "
    "plum purple red rose ruby russet salmon sand sapphire scarlet sienna silver slate tan teal turquoise violet wheat "
    "white yellow"
)

SYLLABLES = _listed("ba ken lo mir ta ves ru don sil pa")

BRAND_SYLLABLES = _listed("alto brio cora dyna evo fina gala halo iris juno")

DESCRIPTION_WORDS = _listed(
    "about above after again all also always annual any areas because before best better bright broad by can careful "
    "certain changes clear close common complete could current days deep different early easy enough even every exact "
    "families far few figures final fine firm first for free fresh from full general good great hands hard heavy here "
    "high homes hours ideas in important just kind large late later light likely little local long low main makes many "
    "may means might modern more most much must natural near new next no now number of often old on once only open "
    "other our out over own parts past people places plain points popular possible present private public quick quite "
    "rather ready real recent right rules same services short simple single small social soft sometimes soon special "
    "standard still strong such sure terms then these things this though times to together true under until upper used "
    "useful usual values very views well when where which while whole wide with words work years yet young"
)

FIRST_NAMES = _listed(
    "Ada Alan Alice Amir Ana Andre Anna Arun Ben Bela Carla Carlos Chen Clara Dana Daniel David Diego Elena Elias Emma "
    "Erik Eva Farah Felix Fiona George Grace Hana Hans Hugo Ida Igor Ines Ivan Jack Jana Jane Javier John Jonas Julia "
    "Kai Karl Kate Kenji Lara Laura Leo Lena Lucas Lucy Maria Mark Marta Max Maya Mia Milan Mina Nadia Nina Noah Nora "
    "Olga Oscar Otto Paul Pedro Petra Priya Ravi Rita Rosa Ruth Sam Sara Sofia Sven Tara Theo Tim Tom Uma Vera Victor "
    "Wei Yara Yusuf Zoe"
)

LAST_NAMES = _listed(
    "Abbott Adams Ahmed Allen Alvarez Baker Barnes Becker Bell Bennett Brooks Brown Campbell Carter Chan Clark Cohen "
    "Collins Cooper Costa Cruz Davies Diaz Dubois Edwards Evans Fischer Flores Foster Garcia Gomez Gray Green Gupta "
    "Hall Harris Hill Hoffman Hughes Ivanov Jackson Jansen Johnson Jones Kaya Kelly Khan Kim King Kovac Kumar Larsen "
    "Lee Lewis Lopez Martin Mendez Meyer Miller Moore Morgan Murphy Nakamura Nelson Nguyen Novak Olsen Ortiz Park "
    "Parker Patel Perez Peters Phillips Price Reed Reyes Rivera Roberts Rossi Russo Sanchez Sato Schmidt Scott Silva "
    "Singh Smith Stewart Suzuki Tanaka Taylor Thomas Torres Turner Vega Walker Wang Weber White Wilson Wood Wright "
    "Yang Young Zhang"
)

SALUTATIONS = ("Dr.", "Miss", "Mr.", "Mrs.", "Ms.", "Sir")

COUNTRIES = _listed(
    "ARGENTINA|AUSTRALIA|AUSTRIA|BELGIUM|BRAZIL|CANADA|CHILE|CHINA|COLOMBIA|CROATIA|DENMARK|EGYPT|ESTONIA|FINLAND|"
    "FRANCE|GERMANY|GHANA|GREECE|HUNGARY|ICELAND|INDIA|INDONESIA|IRELAND|ISRAEL|ITALY|JAPAN|JORDAN|KENYA|LATVIA|"
    "LITHUANIA|MALAYSIA|MEXICO|MOROCCO|NEPAL|NETHERLANDS|NEW ZEALAND|NIGERIA|NORWAY|PERU|PHILIPPINES|POLAND|PORTUGAL|"
    "ROMANIA|SENEGAL|SERBIA|SINGAPORE|SLOVAKIA|SLOVENIA|SPAIN|SRI LANKA|SWEDEN|SWITZERLAND|THAILAND|TUNISIA|TURKEY|"
    "UGANDA|UKRAINE|UNITED KINGDOM|UNITED STATES|URUGUAY|VIET NAM|ZAMBIA",
    "|",
)

STREETS = _listed(
    "Ash Birch Broad Bridge Cedar Cherry Chestnut Church College Elm Forest Franklin Green Highland Hill Hickory "
    "Jefferson Lake Laurel Lincoln Locust Main Maple Meadow Mill North Oak Park Pine Poplar Railroad Ridge River South "
    "Spring Spruce Sunset Sycamore Valley View Walnut Washington West Willow Woodland"
)

STREET_TYPES = _listed("Avenue Boulevard Circle Court Drive Lane Parkway Road Street Way")

CITIES = _listed(
    "Ashford Bridgeton Centerville Clifton Fairview Georgetown Greenfield Lakeside Midway Oakland Riverside"
)

STATES = ("AL", "CA", "CO", "GA", "IL", "MI", "MN", "NC", "NY", "OH", "TN", "TX", "VA", "WA")
# Hours from Greenwich of each state's standard time.
STATE_OFFSETS = (-6, -8, -7, -5, -6, -5, -6, -5, -5, -5, -6, -6, -5, -8)

STORE_HOURS = ("8AM-4PM", "8AM-8AM", "8AM-12AM")
