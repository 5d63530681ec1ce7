"""The example of Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets (2006), Table 6.

C4.5, plain and with one or two settings tuned, on 14 data sets. The last two scores of "voting" are printed as equal; the
mean ranks printed below them need the third to be above the fourth, as it was before rounding.
"""

import numpy as np

SCORES = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
MEAN_RANKS = (3.143, 2.000, 2.893, 1.964)
# q of Table 5 (a) for 2 to 10 classifiers, at 0.05 and 0.10.
Q = {
    0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
    0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920),
}
