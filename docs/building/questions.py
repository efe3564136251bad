"""Questions of newcomers and the sections that answer them: two clicks from the front page, or one search.

They are questions from the forums of similar libraries, in the words that people search with, including error messages
of other libraries. The build of the site fails if a search does not list the answer among the first results.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ["BOOST", "EXPLAINING", "FIRST", "QUESTIONS", "found", "unanswered"]

EXPLAINING, BOOST = ("guides/", "tutorials/"), 4  # explanations rank before lists
FIRST = 5  # results that are visible without scrolling
TITLE = 3.0  # the weight of a word in a title relative to one in the text

COMMON = set(
    "a after an and by does from i in is it my of on or that the through to up what where which why with".split()
)

# The queries, and the section with the answer: a page under docs/, and a heading in it.
QUESTIONS: Mapping[str, str] = {
    "grad is None after backward": "guides/faq.md#why-is-my-grad-none",
    "leaf that requires grad, in-place operation": "guides/faq.md#why-can-i-not-write-to-a-leaf-that-requires-grad",
    "backward through the graph a second time": "guides/faq.md#how-do-i-go-backward-through-a-graph-a-second-time",
    "modified by an inplace operation": "guides/faq.md#why-is-there-no-error-modified-by-an-inplace-operation",
    "output with several elements": "guides/faq.md#how-do-i-differentiate-an-output-with-several-elements",
    "convert a tensor to a numpy array": "guides/faq.md#how-do-i-get-a-number-or-an-array-out-of-a-tensor",
    "gradients add up, set to zero": "guides/faq.md#why-do-my-gradients-add-up",
    "Hessian vector product": "guides/faq.md#how-do-i-compute-a-hessian-and-which-api-should-i-use",
    "where does the NaN come from": "guides/faq.md#where-did-the-nan-come-from",
    "memory grows in a training loop": "guides/faq.md#how-much-memory-does-a-graph-keep-and-why",
    "scipy minimize with gradients": "guides/faq.md#how-do-i-use-scipyoptimize",
    "save parameters to disk": "guides/faq.md#how-do-i-save-to-disk",
    "at[].set in a scan": "guides/coming-from-jax.md#a-scan-is-a-loop",
    "update a parameter in place": "guides/faq.md#how-do-i-update-a-parameter",
    "which NumPy functions work": "guides/faq.md#which-numpy-functions-work",
    "install": "getting-started.md#install",
    "curve fit": "getting-started.md#fit-a-curve-to-your-own-data",
    "ODE": "guides/differentiating-solvers.md#ordinary-differential-equations-ode",
    "slow loop, make it faster": "guides/faq.md#my-loop-is-slow-how-do-i-make-it-faster",
}


def unanswered(sections: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the questions whose answers are not among the first results of a search.

    Arguments:
        sections: title and text of each section, by place, as in `guides/faq.md#how-do-i-save-to-disk`.
    """
    return [question for question, answer in QUESTIONS.items() if answer not in found(question, sections)[:FIRST]]


def found(query: str, sections: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the results of a search, best first, as addresses of sections.

    Source: Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009). As in the site's
    own search, titles are a field by themselves.
    """
    scores: Counter[str] = Counter()
    for field, weight in ((0, TITLE), (1, 1.0)):
        counts = {place: Counter(_words(texts[field])) for place, texts in sections.items()}
        mean = sum(counter.total() for counter in counts.values()) / len(counts)
        for word in set(_words(query)):
            holders = [place for place, counter in counts.items() if word in counter]
            rarity = math.log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
            for place in holders:
                often, length = counts[place][word], counts[place].total() / mean
                boost = weight * (BOOST if place.startswith(EXPLAINING) else 1)
                scores[place] += boost * rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length))
    return [place for place, _ in scores.most_common()]


def _words(text: str) -> Sequence[str]:
    """Return the stems of the words of a text, without stop words."""
    found = re.findall(r"[a-z_]+", text.lower())
    return [re.sub(r"(?<=\w{3})(s|ed|ing|es)$", "", word) for word in found if word not in COMMON]
