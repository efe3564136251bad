"""The panel example: its loss and gradient, and the same fits in threads and on a Dask cluster of two processes."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import viewgrad as vg

pytest.importorskip("scipy")

SCRIPT = Path(__file__).parents[1] / "examples" / "panel_fit.py"


@pytest.fixture(scope="module")
def example():
    """Return the example as a module with a name that other processes can import."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        yield importlib.import_module("panel_fit")
    finally:
        sys.path.remove(str(SCRIPT.parent))


def loss_in_numpy(parameters, series):
    """Return the loss by the same recursion, with the states in lists."""
    alpha, beta, gamma = 1 / (1 + np.exp(-parameters[:3]))
    levels, trends, seasons, errors = [parameters[3]], [parameters[4]], list(parameters[5:]), []
    for t, observed in enumerate(series):
        errors.append(observed - (levels[-1] + trends[-1] + seasons[t]))
        levels.append(alpha * (observed - seasons[t]) + (1 - alpha) * (levels[-1] + trends[-1]))
        trends.append(beta * (levels[-1] - levels[-2]) + (1 - beta) * trends[-1])
        seasons.append(gamma * (observed - levels[-1]) + (1 - gamma) * seasons[t])
    return np.mean(np.square(errors))


def test_the_loss_and_its_gradient(example):
    (series,) = example.panel(1, 30)
    start = example.first_guess(series)
    assert float(example.mean_squared_error.function(start, series)) == pytest.approx(loss_in_numpy(start, series))
    leaf = vg.Tensor(start, requires_grad=True)
    value = example.mean_squared_error.function(leaf, vg.asarray(series))
    assert float(value.detach()) == pytest.approx(loss_in_numpy(start, series), rel=1e-12)
    (gradient,) = vg.autograd.grad(value, leaf)
    for number in range(len(start)):
        step = 1e-5 * np.eye(len(start))[number]
        difference = (loss_in_numpy(start + step, series) - loss_in_numpy(start - step, series)) / 2e-5
        assert float(gradient[number]) == pytest.approx(difference, rel=1e-5, abs=1e-6)


@pytest.mark.slow
def test_threads_and_a_cluster_fit_what_one_process_fits(example, monkeypatch, capsys):
    monkeypatch.setattr(example, "BATCH", 2)
    series = example.panel(4, 24)
    batches = [series[:2], series[2:]]
    expected = example.joined([example.fit_batch(batch) for batch in batches])
    assert all(error < loss_in_numpy(example.first_guess(one), one) for (_, error), one in zip(expected, series))
    found = [example.fit_in_threads(batches, 2)[0]]
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found.append(example.fit_on_cluster(client, batches)[0])
        assert len(client.scheduler_info()["workers"]) == 2
        x = client.submit(lambda t: vg.exp(t), vg.ones(3)).result()  # tensors and operators can be pickled, too
        np.testing.assert_allclose(x.numpy(), np.e)
    for fits in found:
        for (parameters, error), (same, same_error) in zip(fits, expected, strict=True):
            np.testing.assert_allclose(parameters, same, rtol=1e-6, atol=1e-8)
            assert error == pytest.approx(same_error)


def test_the_command_reports_scaling(example, capsys):
    assert example.main(["--threads", "--series", "2", "--months", "24", "--workers", "1", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["1 threads", "2 threads"]
    assert "2 series in" in lines[0] and "1.00 times the first" in lines[0]
    with pytest.raises(SystemExit):
        example.main(["--months", "3"])
