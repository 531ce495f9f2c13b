"""The report: its numbers, its size and its safety, and the page itself in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
)

pytest.importorskip("jinja2")

from metricboost import SDist, SDistClassifier, SDistClassifierCV, load
from metricboost.datasets import make_xor
from metricboost.engines import get_engine
from metricboost.errors import GuessingWarning
from metricboost.report import make_report
from metricboost.report._quality import quality

MEBIBYTE = 2**20


def data_of(report):
    return json.loads(re.search(r'id="report-data">(.*?)</script>', report.html, re.S).group(1))


def unpacked(column):
    import base64

    return np.frombuffer(base64.b64decode(column["data"]), dtype=column["type"])


@pytest.fixture(scope="module")
def fitted():
    X, y = make_xor(n_samples=700, n_features=20, informative=2, random_state=0)
    y = np.array(["no", "yes"])[y]
    return SDistClassifier(random_state=0).fit(X[:400], y[:400]), X[400:], y[400:]


@pytest.fixture(scope="module")
def report(fitted):
    model, X, y = fitted
    return model.report(X, y, title="A <b>title</b>")


def test_scores(fitted):
    model, X, y = fitted
    labels = (y == "yes").astype(int)
    probabilities = model.predict_proba(X)
    found = quality(labels, probabilities, probabilities.argmax(axis=1))
    assert found.error == pytest.approx(1 - accuracy_score(y, model.predict(X)))
    assert found.interval[0] < found.error < found.interval[1]
    scores = {score.name: score.value for score in found.scores}
    assert scores["Area under the ROC curve"] == pytest.approx(
        roc_auc_score(labels, probabilities[:, 1])
    )
    assert scores["Balanced accuracy"] == pytest.approx(
        balanced_accuracy_score(y, model.predict(X))
    )
    assert scores["Brier score"] == pytest.approx(brier_score_loss(labels, probabilities[:, 1]))
    assert np.sum(found.confusion) == len(y)
    assert sum(part.n for part in found.calibration) == len(y)
    observed = sum(part.n * part.observed for part in found.calibration)
    assert observed == pytest.approx(labels.sum())


def test_a_report_of_a_model(fitted):
    """``make_report`` shows the parameters, problems and row numbers that it is given."""
    model, X, y = fitted
    page = make_report(
        model.model_, X[:9], y[:9], title="Nine rows", parameters={"max_iter": 75},
        problems=[("income", "has the text 'none' among its numbers.")],
        numbers=np.arange(100, 109), engine=get_engine("numpy"),
    )  # fmt: skip
    assert "<title>Nine rows</title>" in page.html
    assert '<th scope="row">max_iter</th><td>75</td>' in page.html
    assert "<b>income</b> has the text &#39;none&#39; among its numbers." in page.html
    rows = data_of(page)["rows"]
    assert unpacked(rows["numbers"]).tolist() == list(range(100, 109))
    assert rows["last"] == 108
    assert "max_iter" not in make_report(model.model_).html
    assert '<th scope="row">max_iter</th><td>75</td>' in model.report().html


def test_models_without_predictions():
    X, y = make_xor(n_samples=100, n_features=4, informative=2, random_state=0)
    sdist = SDist(max_iter=2, n_averaged=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="only embeds rows"):
        make_report(sdist.model_, X)


def test_the_rows_of_the_page(fitted, report):
    model, X, _ = fitted
    rows = data_of(report)["rows"]
    assert rows["n"] == rows["explained"] == len(X)
    predicted = np.array(data_of(report)["classes"])[unpacked(rows["predicted"])]
    np.testing.assert_array_equal(predicted, model.predict(X))
    near, distances = unpacked(rows["near"]).reshape(-1, 2), unpacked(rows["distances"])
    amounts = unpacked(rows["amounts"]).reshape(-1, rows["n_reasons"])
    explained = model.explain(X[:10], n_neighbors=1)
    for i, explanation in enumerate(explained):
        own, other = sorted(explanation.neighbors, key=lambda n: n.label != explanation.label)
        assert near[i].tolist() == [own.row, other.row]
        expected = [own.squared_distance, other.squared_distance]
        np.testing.assert_allclose(distances[2 * i : 2 * i + 2], expected, rtol=1e-5)
        reasons = sorted(explanation.reasons(), key=lambda reason: -abs(reason[1]))
        assert amounts[i][0] == pytest.approx(reasons[0][1], rel=1e-5)


def test_the_path_of_the_page(fitted, report):
    model, X, y = fitted
    stages = data_of(report)["stages"]
    predictions = list(model.staged_predict(X))
    for stage in stages:
        assert stage["error"] == pytest.approx(np.mean(predictions[stage["step"] - 1] != y))
    assert stages[-1]["step"] == len(predictions)


def test_names_cannot_break_out(fitted):
    pd = pytest.importorskip("pandas")
    model, X, y = fitted
    assert "<b>title</b>" not in model.report(X[:20], y[:20], title="A <b>title</b>").html
    names = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a&b", '"q"']
    X, y = make_xor(n_samples=120, n_features=4, informative=2, random_state=0)
    y = np.array(["<i>no</i>", "</script>"])[y]
    hostile = SDistClassifier(random_state=0, prune=None).fit(pd.DataFrame(X, columns=names), y)
    page = hostile.report(pd.DataFrame(X, columns=names), y).html
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<i>no</i>" not in page
    assert page.count("</script>") == 2


def test_training_rows_are_noticed():
    X, y = make_xor(n_samples=200, n_features=5, informative=2, random_state=0)
    model = SDistClassifier(random_state=0).fit(X[:100], y[:100])
    assert "errors on them are too optimistic" in " ".join(
        model.report(X[:100], y[:100]).html.split()
    )
    assert "errors on them are too optimistic" not in " ".join(
        model.report(X[100:], y[100:]).html.split()
    )


def test_other_models(tmp_path):
    X, y = load_wine(return_X_y=True)
    X[::13, 2] = np.nan
    model = SDistClassifier(random_state=0, missing="impute").fit(X[::2], y[::2])
    assert "class against the rest" in model.report(X[1::2], y[1::2]).html
    model.save(tmp_path / "m.mbz")
    assert (
        load(tmp_path / "m.mbz").report(X[1::2], y[1::2]).html
        == model.report(X[1::2], y[1::2]).html
    )
    model.save(tmp_path / "n.mbz", rows=False)
    assert "saved without its training rows" in load(tmp_path / "n.mbz").report(X, y).html
    assert "by predictions out of fold" in model.report(X[1::2]).html
    assert "What was learned" in model.report().html
    search = SDistClassifierCV(
        SDistClassifier(missing="impute"), {"max_degree": [1]}, cv=3, random_state=0
    ).fit(X[::2], y[::2])
    assert "best of a search" in search.report(X[1::2], y[1::2]).html


def test_a_model_that_learned_nothing():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(80, 6)), random.integers(0, 2, 80)
    with pytest.warns(UserWarning, match="No step"):
        model = SDistClassifier(random_state=0, oob_gate=50.0).fit(X, y)
    assert "Nothing stood out from the noise" in model.report(X, y).html


def test_a_model_that_found_nothing_says_so_first(tmp_path):
    """``fit`` warns, and the page begins with the same sentence, also after loading."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 40)), np.arange(100) % 2
    with pytest.warns(GuessingWarning, match="no better than guessing") as heard:
        model = SDistClassifier(random_state=0).fit(X, y)
    assert len(heard) == 1
    assert model.best_iter_ > 0
    assert model.oob_gain_ < 2
    model.save(tmp_path / "m.mbz")
    for one in (model, load(tmp_path / "m.mbz")):
        lead = one.report().html.split('class="lead">')[1]
        assert lead.startswith("The model is no better than guessing")
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuessingWarning)
        found = SDistClassifier(random_state=0).fit(*make_xor(200, 10, informative=2)[:2])
    assert found.oob_gain_ > 5
    assert "no better than guessing" not in found.report().html


def test_rows_keep_their_numbers():
    pd = pytest.importorskip("pandas")
    from metricboost.tables import TableClassifier

    X, y = make_xor(n_samples=160, n_features=4, informative=2, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=np.where(y == 1, "p", "q"))
    model = TableClassifier().fit(frame[:120], "y")
    new = frame[120:].copy()
    new.iloc[:5, 4] = None
    rows = data_of(model.report(new))["rows"]
    assert unpacked(rows["numbers"]).tolist() == list(range(5, 40))
    new["y"] = None
    assert data_of(model.report(new))["rows"]["n"] == 40
    assert "No rows were given" in model.report().html


def test_wrong_rows(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="class 'maybe', which the model does not know"):
        model.report(X[:2], ["no", "maybe"])
    with pytest.raises(ValueError, match="X has 3 rows, but y has 2"):
        model.report(X[:3], y[:2])


def test_saved_shown_and_in_a_notebook(report, tmp_path, monkeypatch):
    report.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == report.html
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert report.open().endswith("report.html")
    assert opened[0].startswith("file://")
    assert report._repr_html_().startswith("<iframe srcdoc=")


def test_twenty_thousand_rows_stay_small(fitted):
    model, X, y = fitted
    random = np.random.default_rng(0)
    rows = random.integers(0, len(X), 20_000)
    many = X[rows] + 0.1 * random.normal(size=(20_000, X.shape[1]))
    page = make_report(model.model_, many, y[rows]).html
    assert data_of(make_report(model.model_, many[:10], y[rows][:10]))["rows"]["n"] == 10
    assert len(page) < 5 * MEBIBYTE


# --- in a real browser

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    if BROWSER is None or DRIVER is None:
        pytest.skip("no browser")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, report, tmp_path):
    """The page, newly opened, with empty logs."""
    report.save(tmp_path / "report.html")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get((tmp_path / "report.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []  # the test caused no error on the console


def find(page, name):
    return page.find_element("id", name)


def test_nothing_is_fetched(page):
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert len(urls) == 1
    assert urls[0].startswith("file://")


def place_of(rows, i, width, height, margin=16):
    """The place at which the page draws a row: the map fills the canvas and is centred."""
    points = unpacked(rows["points"]).reshape(-1, 2).astype(float)
    right, top = points.max(axis=0)
    factor = min((width - 2 * margin) / right, (height - 2 * margin) / top)
    x, y = factor * points[i]
    return (width - factor * right) / 2 + x, (height + factor * top) / 2 - y


def shown(page, name):
    """An element of the page, scrolled to the middle of the window."""
    element = find(page, name)
    page.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    return element


@pytest.mark.parametrize("row", [0, 17, 123])
def test_a_click_explains_a_row(page, report, fitted, row):
    from selenium.webdriver import ActionChains

    model, X, _ = fitted
    canvas = shown(page, "map")
    size = canvas.rect["width"], canvas.rect["height"]
    x, y = place_of(data_of(report)["rows"], row, *size)
    ActionChains(page).move_to_element_with_offset(
        canvas, round(x - size[0] / 2), round(y - size[1] / 2)
    ).click().perform()
    assert find(page, "map").get_attribute("title").startswith("Row ")  # the pointer is on a mark
    said = find(page, "said").text
    found = int(re.match(r"Row (\d+):", said).group(1))
    there = np.hypot(*np.subtract(place_of(data_of(report)["rows"], found, *size), (x, y)))
    assert there < 2  # this row, or one that is drawn at the same place
    assert f"classified as “{model.predict(X[[found]])[0]}”" in said
    assert find(page, "row").get_property("value") == str(found)
    near = model.explain(X[[found]], n_neighbors=1)[0].neighbors
    assert all(f"number {neighbor.row}" in said for neighbor in near)


def test_rows_by_number_and_by_key(page):
    field = find(page, "row")
    field.send_keys("7\ue007")
    assert find(page, "said").text.startswith("Row 7:")
    find(page, "map").send_keys("\ue014")  # arrow to the right
    moved = find(page, "said").text
    assert moved.startswith("Row ")
    assert not moved.startswith("Row 7:")


def test_errors_only(page, fitted):
    model, X, y = fitted
    shown(page, "wrong").click()
    find(page, "map").send_keys("\ue014")
    row = int(find(page, "row").get_property("value"))
    assert model.predict(X[[row]])[0] != y[row]


def test_the_slider(page, report):
    stages = data_of(report)["stages"]
    slider = find(page, "step")
    slider.send_keys("\ue011")  # home: the first step
    first = find(page, "stage").text
    assert f"variables\n{stages[0]['variables']}" in first
    assert find(page, "stepsaid").text == f"{stages[0]['step']} of {stages[-1]['step']}"
    slider.send_keys("\ue014")
    assert f"terms\n{stages[1]['terms']}" in find(page, "stage").text
    names = [row.text.split("\n")[0] for row in page.find_elements("css selector", "#shares th")]
    assert names == [name for name, _ in stages[1]["shares"]]


def test_light_and_dark(page):
    def background():
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    before = background()
    shown(page, "theme").click()
    assert background() != before
    find(page, "theme").click()
    assert background() == before


def test_paper_is_white(page):
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    try:
        colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert colour == "rgb(255, 255, 255)"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_a_phone_needs_no_sideways_scrolling(page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.refresh()
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_picture_has_words(page):
    pictures = page.find_elements("css selector", "svg[role=img], canvas[role]")
    assert len(pictures) >= 4
    for picture in pictures:
        titles = picture.find_elements("css selector", "title")
        assert titles or picture.get_attribute("aria-label")
