"""Deep Ranking Ensembles as a searcher of Syne Tune: `DRESearcher`."""

from syne_tune.optimizer.schedulers.searchers.single_objective_searcher import (
    SingleObjectiveBaseSearcher,
)

from dre_plugins.adapters.syne_tune.history import StudySearcher


class DRESearcher(StudySearcher, SingleObjectiveBaseSearcher):  # type: ignore[misc]
    """Searcher using Deep Ranking Ensembles in turns with a universal prior.

    By default, the first three trials are spread over the space, or come from the portfolio of a
    common learner. Then a *universal prior* proposes, a network that was meta-trained on synthetic
    functions, later in turns with a *deep ranking ensemble* (Khazi, Pineda Arango and Grabocka,
    ICLR 2023): see docs/guide/method.md. Arguments that are not listed are those of `AskTell`.

    Use it where a trial takes much longer than a second, for tens to a few hundred trials. It
    works with every scheduler of Syne Tune that takes a searcher, and with
    `LastValueMultiFidelitySearcher` and `IndependentMultiFidelitySearcher`, which take the class.
    The schedulers `DRE`, `ASHADRE` and `DRETransfer` also tell the searcher which trials failed
    without a report and which were stopped; those of Syne Tune do not.

    - Running trials are taken into account: those that have reported count by their reports, the
      others are not suggested again. A searcher suggests no configuration twice (see
      `allow_duplicates`); `IndependentMultiFidelitySearcher` has a searcher for each level, and
      these do not share trials. When a finite space is exhausted, `suggest` returns None and the
      tuner ends.
    - Results with a resource level are compared at equal levels, others at equal numbers of
      reports.
    - Results of trials that another searcher has suggested count as well.
    - Choices that are numbers in ascending order, such as `[16, 32, 64]`, are treated as ordered.

    Example:
        ```python
        from syne_tune.config_space import loguniform, randint
        from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

        config_space = {"lr": loguniform(1e-5, 1e-1), "layers": randint(1, 4)}
        scheduler = AsynchronousSuccessiveHalving(
            config_space,
            metric="loss",
            time_attr="epoch",
            max_t=27,
            searcher=DRESearcher(config_space, random_seed=1),
        )
        ```

    Args:
        config_space: Syne Tune's domains and constants by name.
        points_to_evaluate: Configurations to run first, in order. Parameters that are missing are
            chosen by the model; a number outside its range is tried as it is.
        random_seed: Non-negative seed; None takes one from the operating system.
        prior: What is known before the first trial: "auto" recognises common learners, "universal"
            does not, None is the ensemble alone, and a trained prior is given by its name, as a
            path or as a `dre_plugins.Prior`, see `AskTell`.
        failed: "model" multiplies expected improvements by the predicted probability of success,
            "worst" ranks failed trials below all others, "ignore" leaves them out.
        settings: Expert settings, see `dre_plugins.Settings`.
        memory: See `AskTell`. Trials are recorded when they end, or with their reports at the end
            of the process if nothing says that they have ended. In a searcher that takes the
            class, nothing is recorded.
        valid: Rule that configurations must satisfy, see `AskTell`: a function of a configuration
            with its constants. Points to evaluate are exempt.
        name: Name under which the memory shows the study; `DRE` and `ASHADRE` give their metric.

    Raises:
        ValueError: If an argument is invalid, a domain cannot be searched, the prior has no
            parameter in common with the space, or `valid` raises or holds for no configuration
            that was tried.
    """
