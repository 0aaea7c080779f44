"""A journal in memory, which can kill a search after some of its steps."""


class Killed(BaseException):
    """The end of a process, of which only the journal is left."""


class MemorySteps:
    """Keeps the steps of a search in memory (a `StepStore`)."""

    def __init__(self):
        self.records = {}
        self.n_saved = self.n_loaded = 0
        self.kill_after = None  # this many steps

    def load(self, name, shape, restore):
        record = self.records.get(name)
        if record is not None:
            assert shape is None or all((len(each.codes), each.atoms.n_cols) == shape for each in record.states)
            restore(record)
            self.n_loaded += 1
        return record

    def save(self, name, record):
        self.records[name] = record
        self.n_saved += 1
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after < 0:
                raise Killed

    def drop(self, prefix):
        self.records = {name: record for name, record in self.records.items() if not name.startswith(prefix)}

    def is_due(self):
        return True


class MemoryJournal:
    """A `Journal` in memory, of a search and its passes."""

    def __init__(self):
        self.steps, self.state, self.finished = MemorySteps(), None, None

    def load(self):
        return self.state

    def save(self, state):
        self.state = state

    def end_search(self, finished):
        self.finished = finished
