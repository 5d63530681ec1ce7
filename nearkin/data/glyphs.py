"""Glyphs: the embedded data set, characters drawn from the fonts that ship inside matplotlib.

It needs no download and behaves like the real sets in small: several hundred classes, dozens of images of
each, and test classes that training never sees. A class is one character; its images differ in font face,
warp, stroke thickness, ink, background and noise, so raw pixels say little about it and a learned embedding
says much.

Every image is a function of (seed, character, image number) and of nothing else, so asking for more classes
or more images never changes the ones there were. Only sums, products and quotients touch pixel values, no
sines, exponentials or matrix products, whose last bit depends on the machine: equal library versions give
equal bits everywhere.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearkin.data.table import ImageTable, Splits

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

FAMILIES = (
    ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    ("DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique"),
    ("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic"),
    ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta"),
    ("cmr10", "cmb10", "cmti10", "cmss10", "cmtt10"),
)
"""Font files used, without ".ttf"; matplotlib's others hold pieces of formulas under private code points."""

CANONICAL_FACES = (
    *("DejaVuSans", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Italic"),
    *("STIXGeneral", "STIXGeneralItalic"),
)
"""Faces in which characters are compared: an upright of each family, and italics, whose shapes are others."""

BLOCKS = (
    *((0x21, 0x7E), (0x391, 0x3FF), (0x400, 0x52F), (0x531, 0x587), (0x10A0, 0x10FF)),  # Latin to Georgian
    *((0xA1, 0xFF), (0x100, 0x2AF)),  # more Latin
    *((0x20A0, 0x20BF), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2100, 0x214F), (0x2300, 0x23FF)),  # signs
    *((0x25A0, 0x25FF), (0x2600, 0x26FF), (0x2701, 0x27BF)),  # shapes and pictures
    (0xE80, 0xEFF),  # Lao
)
"""Unicode ranges searched for characters; where two look alike, the one that comes first here stays."""

SMALL = 20
ALIKE = 0.77
"""Two characters whose canonical drawings correlate this much in any face are the same to the eye."""

CHARACTERS = (
    "#$%&*+0123457<=>@ABCFKLMQVWXYbdfkmnpzΞΣΦΨαβεζλςτωϏϗϞϟϠϷϻЂЉЊДЖЛЦЧЪЫЮщђѣѥѬѱҐҗҘҡҥҦҲҵҶҺӔӕԓԔԳԶԸ"
    "ԹԾԿՀՃՄՇՊՎՒՔՖժխձչႢႥႧႨႪႫႮႵႾႿჄჅდოჟრტფჭჰჹ¢£¤§©¬±¶ŒŧƈƊƝƣƤƦƧƴƺȤȴȵȼȾȿɂɆɌɕɚɮɹʁʍʕʖʞʠʣʤʦʨʪʫʬʭʮʯ₠₦₧₪₯"
    "₰₹₺←↖↗↬↯↰↲↳↴↶↷↸↺⇅⇐⇕⇖⇗⇚⇢⇬⇱⇲⇶∍∓√∞∠∪∮∴∵∷∸∹∺∿≅≆≎≏≗≣≤≥≦≧≨≩≪≫≶≷≼≽⊃⊆⊇⊊⊋⊏⊕⊗⊟⊠⊢⊣⊧⊩⊫⊰⊱⊻⊿⋄⋆⋇⋈⋋⋌⋑⋒⋓⋔⋘⋙"
    "⋚⋛⋜⋝⋨⋩⋰⋱⋲⋳⋵⋹⋺⋽℗℘℞℥⅁⅋⌁⌂⌅⌆⌌⌐⌑⌒⌕⌘⌥⌦⌨⌫⌬⌿⍀⍓⍰⏎⏏⏥▣▥▧▲△▶▷▼▽◀◁◌◐◑◒◓◜◝◞◟◡◢◣◤◥◸◹◺☃☄☆☈☊☍☏☑☔☕☖☘☙☜☝☞☟☠☡☢"
    "☣☧☫☭☸☽☾☿♃♅♈♉♊♋♌♍♏♑♓♔♕♖♗♘♚♡♤♨♪♫♬♲♳♻♿⚅⚐⚑⚒⚓⚔⚕⚖⚗⚘⚚⚛⚜⚡⚥✁✂✃✆✇✌✍✎✐✑✓✖✙✞✟✠✧✩✬❂❏❝❞❡❢❦❧➀➂➃➉➌➘➢➩➫➭➮➴➶"
    "➺ຂຄຊຖທຜຝຣສຮຯະ"
)
"""The classes: what `distinct_characters` returns, kept so that drawing the set need not compare them all."""

INSTALL = "glyphs draws with the fonts of matplotlib, which is not installed: run pip install 'nearkin[demo]'."


def glyphs(
    classes: int = 400,
    images: int = 32,
    size: int = 32,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Splits:
    """Draw the glyphs data set: `classes` characters, `images` pictures of each, `size` x `size` grey pixels.

    The seed shuffles the characters, so both halves mix scripts; the first half trains, the second tests.
    `progress(done, total)`, if given, is called after each class.

    >>> splits = glyphs(classes=4, images=2)
    >>> splits.train.images.shape, splits.train.labels.tolist()
    ((4, 32, 32), [0, 0, 1, 1])
    """
    check(classes, images, size, seed)
    fonts = _Fonts()
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(CHARACTERS))
    chosen = [CHARACTERS[index] for index in order[:classes]]
    pixels = np.empty((classes, images, size, size), np.uint8)
    for index, character in enumerate(chosen):
        pixels[index] = _draw_class(fonts, character, images, size, seed)
        if progress is not None:
            progress(index + 1, classes)
    half = classes // 2
    return Splits(_table(pixels[:half], chosen[:half]), _table(pixels[half:], chosen[half:]), "glyphs")


def _table(pixels: Bytes, characters: Sequence[str]) -> ImageTable:
    classes, images, size, _ = pixels.shape
    labels = np.repeat(np.arange(classes, dtype=np.int64), images)
    return ImageTable(pixels.reshape(classes * images, size, size), labels, tuple(characters))


def check(classes: int, images: int, size: int = 32, seed: int = 0) -> None:
    """Raise unless such a set can be drawn."""
    most = len(CHARACTERS) - len(CHARACTERS) % 2
    if classes < 4 or classes % 2 or classes > most:
        raise ValueError(
            f"classes must be an even number from 4 to {most}, since half train and half test, "
            f"but is {classes}: pass {min(max(classes + classes % 2, 4), most)}."
        )
    if images < 2:
        raise ValueError(
            f"images must be at least 2 per class, so that each has a kin to find, but is {images}: pass 32."
        )
    if size < 12:
        raise ValueError(f"size must be at least 12 pixels to show a character, but is {size}: pass 32.")
    if seed < 0:
        raise ValueError(f"seed must be a whole number from 0 up, but is {seed}: pass {-seed}.")


class _Fonts:
    """The faces of matplotlib: which characters each holds, and their outlines as pixels."""

    PIXELS = 128

    def __init__(self) -> None:
        from PIL import Image, ImageDraw, ImageFont

        try:
            import matplotlib
            from matplotlib.ft2font import FT2Font
        except ImportError as error:
            raise ImportError(INSTALL) from error
        self._image, self._draw = Image, ImageDraw.Draw
        folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        self._fonts: dict[str, FreeTypeFont] = {}
        self._holds: dict[str, frozenset[int]] = {}
        for face in chain.from_iterable(FAMILIES):
            path = str(folder / f"{face}.ttf")
            # Basic layout draws one glyph per code point, whether or not a text shaping library is installed.
            self._fonts[face] = ImageFont.truetype(path, self.PIXELS, layout_engine=ImageFont.Layout.BASIC)
            self._holds[face] = frozenset(FT2Font(path).get_charmap())

    def faces(self, character: str) -> tuple[str, ...]:
        """The faces that have this character; Computer Modern keeps to Unicode in letters and digits only."""
        code, plain = ord(character), character.isascii() and character.isalnum()
        families = FAMILIES if plain else FAMILIES[:-1]
        return tuple(face for face in chain.from_iterable(families) if code in self._holds[face])

    def outline(self, character: str, face: str) -> Any:
        """The character as a Pillow image of coverage, cut to its ink."""
        image = self._image.new("L", (4 * self.PIXELS, 3 * self.PIXELS))
        place = (self.PIXELS, 2 * self.PIXELS)
        self._draw(image).text(place, character, fill=255, font=self._fonts[face], anchor="ls")
        return image.crop(image.getbbox())

    def master(self, character: str, face: str, side: int) -> Bytes:
        """The outline in the middle of a (side + 4, side + 4) square, its longer edge `side` pixels."""
        outline = self.outline(character, face)
        longer = max(outline.size)
        width, height = (max(1, (2 * edge * side + longer) // (2 * longer)) for edge in outline.size)
        square = np.zeros((side + 4, side + 4), np.uint8)
        top, left = (side + 4 - height) // 2, (side + 4 - width) // 2
        small = outline.resize((width, height), self._image.Resampling.BOX)
        square[top : top + height, left : left + width] = np.asarray(small)
        return square


def _draw_class(fonts: _Fonts, character: str, images: int, size: int, seed: int) -> Bytes:
    """All images of one character; drawn together because numpy is fast on many, not because they depend."""
    faces = fonts.faces(character)
    masters: dict[str, Bytes] = {}
    chosen: list[Bytes] = []
    draws = np.empty((images, 16), np.float32)
    grids = np.empty((images, 4, 5, 5), np.float32)
    noise = np.empty((images, size, size), np.float32)
    for number in range(images):
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, ord(character), number])))
        face = faces[int(random.integers(len(faces)))]
        if face not in masters:
            masters[face] = fonts.master(character, face, 2 * size)
        chosen.append(masters[face])
        random.random(out=draws[number], dtype=np.float32)
        random.random(out=grids[number], dtype=np.float32)
        noise[number] = random.integers(256, size=(4, size, size), dtype=np.uint8).sum(0, dtype=np.int16)
    # Four summed bytes are close to a normal draw, and exact; mean 510, standard deviation 147.8.
    noise = (noise - 510) / 147.8
    uniform = _Uniform(draws)
    ink = _ink(np.stack(chosen), grids[:, :2], uniform, size)
    return _paint(ink, grids[:, 2:], noise, uniform)


class _Uniform:
    """Hands out the random numbers of some images in order, one for each per call, spread over a range."""

    def __init__(self, draws: Floats) -> None:
        self._columns = iter(draws.T.reshape(draws.shape[1], -1, 1, 1))

    def __call__(self, low: float, high: float) -> Floats:
        column: Floats = next(self._columns)
        return low + (high - low) * column


def _ink(masters: Bytes, grids: Floats, uniform: _Uniform, size: int) -> Floats:
    """Coverage of the warped characters, (n, size, size) in 0 .. 1, sampled at twice the resolution."""
    fine = 2 * size
    half_turn = uniform(-0.18, 0.18)  # tangent of half the angle: rational sine and cosine, up to 20 degrees
    cosine = (1 - half_turn * half_turn) / (1 + half_turn * half_turn)
    sine = 2 * half_turn / (1 + half_turn * half_turn)
    shear = uniform(-0.35, 0.35)
    scale = uniform(0.5, 0.85)
    stretch = uniform(0.8, 1.25)
    wide, high = scale * stretch, scale / stretch
    axis = _middles(fine) - 0.5
    x = axis[None, None, :] - uniform(-0.12, 0.12)
    y = axis[None, :, None] - uniform(-0.12, 0.12)
    bend = uniform(0.0, 0.16)
    x, y = x + bend * _blotches(grids[:, 0], fine), y + bend * _blotches(grids[:, 1], fine)
    x, y = cosine * x + sine * y, cosine * y - sine * x
    x, y = (x - shear * y) / wide, y / high
    ink = _sample(masters, x * fine, y * fine)
    ink = _thicken(ink, uniform(0.1, 0.42), max(1, size // 16))
    return (ink[:, ::2, ::2] + ink[:, 1::2, ::2] + ink[:, ::2, 1::2] + ink[:, 1::2, 1::2]) * np.float32(0.25)


def _middles(count: int) -> Floats:
    """Where the middles of `count` pixels lie on a line from 0 to 1."""
    middles: Floats = (np.arange(count, dtype=np.float32) + np.float32(0.5)) / np.float32(count)
    return middles


def _sample(masters: Bytes, x: Floats, y: Floats) -> Floats:
    """Bilinear values of each master at points measured in its pixels from its centre; zero outside."""
    count, side, _ = masters.shape
    x = np.clip(x + (side - 1) / 2, 0, side - 1.001)
    y = np.clip(y + (side - 1) / 2, 0, side - 1.001)
    left, top = x.astype(np.intp), y.astype(np.intp)
    x, y = x - left.astype(np.float32), y - top.astype(np.float32)
    values = masters.reshape(-1).astype(np.float32) / 255
    at = (np.arange(count)[:, None, None] * side + top) * side + left
    upper_left, upper_right = values.take(at), values.take(at + 1)
    lower_left, lower_right = values.take(at + side), values.take(at + (side + 1))
    upper = upper_left + x * (upper_right - upper_left)
    lower = lower_left + x * (lower_right - lower_left)
    return upper + y * (lower - upper)


def _thicken(ink: Floats, level: Floats, radius: int) -> Floats:
    """Blur by a box and cut at `level`: the lower, the fatter the strokes. Hairlines stay as drawn."""
    blurred = ink
    for _ in range(2):
        padded = np.pad(blurred.swapaxes(1, 2), ((0, 0), (0, 0), (radius, radius)))
        blurred = padded[:, :, : -2 * radius]
        for start in range(1, 2 * radius + 1):
            blurred = blurred + padded[:, :, start : start + blurred.shape[2]]
    return np.maximum(ink, np.clip((blurred / (2 * radius + 1) ** 2 - level) * 3 + 0.5, 0, 1))


def _paint(ink: Floats, grids: Floats, noise: Floats, uniform: _Uniform) -> Bytes:
    """Ink and ground, each with blotches, the ground also with a gradient; light on dark or dark on light."""
    size = ink.shape[1]
    axis = _middles(size) - 0.5
    contrast = uniform(0.25, 0.7)
    dark = 0.1 + uniform(0.0, 1.0) * (0.8 - contrast)
    inverted = (uniform(-1, 1) > 0).astype(np.float32)
    gradient = uniform(-0.6, 0.6) * axis[None, None, :] + uniform(-0.6, 0.6) * axis[None, :, None]
    ground = inverted + gradient + uniform(0.0, 1.2) * _blotches(grids[:, 0], size)
    figure = 1 - inverted + uniform(0.0, 0.6) * _blotches(grids[:, 1], size)
    picture = dark + contrast * (ground + ink * (figure - ground) + uniform(0.05, 0.25) * noise)
    return np.clip(np.rint(255 * picture), 0, 255).astype(np.uint8)


def _blotches(grid: Floats, size: int) -> Floats:
    """A coarse grid of random values, blown up smoothly to (n, size, size), in -0.5 .. 0.5."""
    cells = grid.shape[1] - 1
    at = _middles(size) * cells
    cell = at.astype(np.intp)
    part = at - cell.astype(np.float32)
    part = part * part * (3 - 2 * part)
    rows = grid[:, cell] + part[None, :, None] * (grid[:, cell + 1] - grid[:, cell])
    left, right = rows.take(cell, 2), rows.take(cell + 1, 2)
    return left + part * (right - left) - 0.5


def distinct_characters() -> str:
    """Choose the classes: characters of `BLOCKS` that two font families or more have and that look different.

    Latin A, Greek Alpha and Cyrillic A are one shape, and so are o, O and 0 once drawn at one size. Each
    candidate is compared, in every canonical face, with those accepted before it, and dropped when it
    resembles one too much.
    """
    fonts = _Fonts()
    candidates = [chr(code) for first, last in BLOCKS for code in range(first, last + 1)]
    candidates = [character for character in candidates if _is_candidate(fonts, character)]
    alike = likeness(candidates)
    accepted: list[int] = []
    for index in range(len(candidates)):
        if not accepted or alike[index, accepted].max() < ALIKE:
            accepted.append(index)
    return "".join(candidates[index] for index in accepted)


def likeness(characters: Sequence[str]) -> NDArray[np.float64]:
    """How alike each two characters look, (n, n): their highest correlation in a canonical face both have.

    Drawings are cut to the ink and compared twice: in proportion, and stretched to a square, because the warp
    of the images also stretches. Two characters that share no face get -1.
    """
    fonts = _Fonts()
    result = np.full((len(characters), len(characters)), -1.0)
    for face in CANONICAL_FACES:
        having = [index for index, character in enumerate(characters) if face in fonts.faces(character)]
        if not having:
            continue
        part = np.ix_(having, having)
        for stretched in (False, True):
            rows = [_canonical(fonts.outline(characters[index], face), stretched) for index in having]
            vectors = np.array(rows).reshape(len(rows), -1)
            vectors -= vectors.mean(1, keepdims=True)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            result[part] = np.maximum(result[part], vectors @ vectors.T)
    return result


def _canonical(outline: Any, stretched: bool) -> NDArray[np.float64]:
    """The outline at one small size, slightly blurred; as it is, or stretched to a square."""
    from PIL import Image, ImageFilter

    if not stretched:
        longer = max(outline.size)
        square = Image.new("L", (longer, longer))
        square.paste(outline, tuple((longer - edge) // 2 for edge in outline.size))
        outline = square
    framed = Image.new("L", (SMALL + 4, SMALL + 4))
    framed.paste(outline.resize((SMALL, SMALL), Image.Resampling.BOX), (2, 2))
    return np.asarray(framed.filter(ImageFilter.GaussianBlur(0.7)), np.float64)


def _is_candidate(fonts: _Fonts, character: str) -> bool:
    """Letters, digits and symbols without accents, in two font families or more, no mere bars or dots."""
    category = unicodedata.category(character)
    if not (category[0] in "LNS" and category != "Sk") and character not in "#%&*?@§¶¿":
        return False
    if unicodedata.normalize("NFKD", character) != character:
        return False
    faces = fonts.faces(character)
    if sum(any(face in faces for face in family) for family in FAMILIES) < 2:
        return False
    outlines = [fonts.outline(character, face) for face in CANONICAL_FACES if face in faces]
    bar = any(max(outline.size) > 2.5 * min(outline.size) for outline in outlines)
    dot = any(np.asarray(outline).mean() > 0.75 * 255 for outline in outlines)
    return not bar and not dot
