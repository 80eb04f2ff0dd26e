"""A database server that is killed and started again during a study with eight workers."""

import time

import pytest

pytest.importorskip("optuna")

import restart_worker as worker
from optuna.trial import TrialState
from postgresql import Server, missing
from processes import fork_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

N_WORKERS, N_TRIALS, HEARTBEAT = 8, 80, 1


def test_eight_workers_outlive_their_server() -> None:
    context = fork_server()
    with Server() as server:
        study = worker.study_in(server.url, HEARTBEAT)
        arguments = (server.url, N_TRIALS, HEARTBEAT)
        workers = [context.Process(target=worker.work, args=arguments) for _ in range(N_WORKERS)]
        for process in workers:
            process.start()
        for n_before_kill in (10, 30, 50):
            while not worker.is_done(study, n_before_kill):
                time.sleep(0.1)
            before = worker.complete(study)
            server.kill()
            time.sleep(1.0)
            server.start()
            while not worker.is_done(study, n_before_kill):  # the first answers are errors
                time.sleep(0.1)
            assert before.items() <= worker.complete(study).items()
        for process in workers:
            process.join(300)
        assert [process.exitcode for process in workers] == [0] * N_WORKERS

        trials = study.trials
        states = [trial.state for trial in trials]
        print({state.name: states.count(state) for state in set(states)})
        assert [trial.number for trial in trials] == [*range(len(trials))]
        whole = [str(trial.params) for trial in trials if trial.state is TrialState.COMPLETE]
        assert len(whole) == len(set(whole)) >= N_TRIALS
        # What a kill interrupted was told to have failed by Optuna's heartbeat, or still runs.
        assert states.count(TrialState.RUNNING) + states.count(TrialState.FAIL) <= 3 * N_WORKERS
        sources = [trial.user_attrs.get("dre:explanation", {}).get("source") for trial in trials]
        assert "fallback" not in sources
