"""The site: every page is in its navigation, and links lead where they led in the repository."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILDING = ROOT / "docs" / "building"


@pytest.fixture(autouse=True, scope="module")
def building():
    """Return the modules that build the site, imported as by its hook."""
    paths = [str(BUILDING), str(ROOT / "tools")]
    sys.path[:0] = paths
    yield
    for path in paths:
        sys.path.remove(path)
    for path in BUILDING.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert pages - set(re.findall(r"([\w/.-]+\.md)", navigation)) == set()


def sections():
    """Return the title and text of each section of the pages under docs/, by place."""
    docs, found = ROOT / "docs", {}
    for path in docs.rglob("*.md"):
        for title, text in re.findall(r"^##+ (.*)\n((?:(?!^##).*\n)*)", path.read_text(), re.MULTILINE):
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            found[f"{path.relative_to(docs)}#{anchor}"] = title, text
    return found


def test_site_search_answers_common_questions():
    import questions

    assert set(questions.QUESTIONS.values()) <= sections().keys()
    assert questions.unanswered(sections()) == []


def test_common_questions_are_answered_within_two_clicks():
    import questions

    # The first leads to a page, the second to a section in the table at its side.
    front = set(re.findall(r"\]\(docs/([^)#]+)", (ROOT / "README.md").read_text()))
    assert {answer.partition("#")[0] for answer in questions.QUESTIONS.values()} <= front


def test_each_tutorial_opens_with_a_problem_and_has_pictures():
    navigation = (ROOT / "mkdocs.yml").read_text()
    tutorials = re.findall(r"^ +- \d+\. .*: (\S+\.md)$", navigation, re.MULTILINE)
    assert len(tutorials) == 6
    for page in tutorials:
        text = (ROOT / "docs" / page).read_text()
        assert re.match(r"# .*\n\n\*\*The problem\.\*\* ", text), page
        assert "\n<!-- picture: " in text, page


@pytest.mark.parametrize(
    "page, text, expected",
    [
        ("notes/engine.md", "[a](scalars.md#x)", "[a](scalars.md#x)"),
        ("notes/engine.md", "[a](../../README.md)", "[a](../index.md)"),
        ("notes/engine.md", "[a](../README.md)", "[a](../map.md)"),
        ("notes/engine.md", "[a](../../viewgrad/errors.py)", "a"),
        ("index.md", "[a](docs/notes/engine.md#b)", "[a](notes/engine.md#b)"),
        ("index.md", "[Note \\[b\\]](docs/notes/engine.md)", "[Note \\[b\\]](notes/engine.md)"),
        ("index.md", "[a](https://numpy.org)", "[a](https://numpy.org)"),
        ("index.md", "```python\nx[0](docs/notes/engine.md)\n```", "```python\nx[0](docs/notes/engine.md)\n```"),
        ("index.md", "[a](docs/none.md)", "[a](none.md)"),
        ("index.md", "![a](docs/pictures/b.svg)", "![a](pictures/b.svg)"),
    ],
)
def test_links(page, text, expected):
    import links

    assert links.in_site(text, page) == expected


def test_every_public_name_is_documented_and_in_the_reference():
    import reference

    assert len([name for namespace in reference.NAMESPACES for name in reference.names_of(namespace)]) > 2000
    assert reference.missing() == []


def test_every_operator_is_described_with_its_formulas():
    import reference

    from viewgrad.operators.define import OPERATORS

    text = "".join(page for path, page in reference.pages().items() if path.startswith("reference/operators/"))
    ours = {name: operator for name, operator in OPERATORS.items() if not operator.user_defined}  # by other tests
    for name, operator in ours.items():
        assert f"{{ #viewgrad.{name} }}" in text
        for formula in operator.formulas:
            assert f"`#!python {' '.join(formula.text.split())}`" in text
    assert text.count("\n>>> vg.") > 0.95 * len(ours)


BAR = '<mrow class="bar"><mi>y</mi></mrow>'


@pytest.mark.parametrize(
    "formula, expected",
    [
        ("grad * conj(other)", 'BAR<mo>·</mo><msup><mrow><mi>other</mi></mrow><mo>*</mo></msup>'),
        ("flowing(grad / self, grad)", '<mfrac><mrow>BAR</mrow><mrow><mi>x</mi></mrow></mfrac>'),
        ("(self + 1) * self_t", "<mrow><mo>(</mo><mi>x</mi><mo>+</mo><mn>1</mn><mo>)</mo></mrow><mo>·</mo>"
         '<mover><mi>x</mi><mo class="dot" stretchy="false">˙</mo></mover>'),
        ("self - (other - 1)", "<mi>x</mi><mo>−</mo>"
         "<mrow><mo>(</mo><mi>other</mi><mo>−</mo><mn>1</mn><mo>)</mo></mrow>"),
        ("expand(grad, axis)", '<mi mathvariant="normal">expand</mi><mo>&#8289;</mo><mrow><mo>(</mo>'
         'BAR<mo>,</mo><mi>axis</mi><mo>)</mo></mrow>'),
    ],
)  # fmt: skip
def test_formulas_as_mathematics(formula, expected):
    import mathematics

    values = {"self": "x", "result": "y", "other": "other"}
    assert mathematics.expression(formula, values) == f"<math><mrow>{expected.replace('BAR', BAR)}</mrow></math>"


def test_every_formula_can_be_written_as_mathematics():
    import mathematics

    from viewgrad.operators.define import OPERATORS

    for operator in OPERATORS.values():
        for formula in operator.formulas:
            text = mathematics.expression(formula.text, {})
            ElementTree.fromstring(text.replace("&#8289;", "").replace("&#160;", " "))


def test_every_public_function_and_method_has_an_example():
    import calls
    import reference

    # Tools that draw whole programs, notes for authors of operators on views, and refusals of tensors.
    left = {"testing.check_feature", "testing.check_program", "views.rebase_history"}
    left |= {"Tensor.setflags", "Tensor.setfield", "testing.profile", "testing.set_profile"}
    assert {name.removeprefix("viewgrad.") for name in reference.without_example()} <= left
    for name in calls.CALLS:
        assert calls.example(name).startswith(">>> "), name
