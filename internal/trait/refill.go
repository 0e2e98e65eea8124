package trait

// StepNamer configs name a step of their job; an unknown one is refused at load.
type StepNamer interface {
	// NamesStep is the key and the step, or "".
	NamesStep() (key, step string)
}

// FilesNamer configs use the files of the step of NamesStep: one that lists none is refused at load.
type FilesNamer interface {
	StepNamer
	NamesFilesOf()
}

// FileLister configs are of readers that keep their list of files, also in parts with a `path`.
type FileLister interface{ ListsFiles() }

// NotResumable configs are of readers that may not resume: a restart after a commit and partitions are
// refused.
type NotResumable interface {
	// CannotResume is the preventing key, or empty.
	CannotResume() (key string)
}

// Divisible configs are of readers of files that can be read in parts (rule P9).
type Divisible interface {
	// CannotDivide is a *registry.ConfigError if these values prevent it.
	CannotDivide() error
}

// LineDivider configs are of the partitioner that divides the file of its step's reader.
type LineDivider interface{ DividesLines() }

// Refiller configs are of writers that may empty and refill their target (rule TW4): two such writers, and
// partitions, are refused, since each would remove the others' rows.
type Refiller interface {
	// Refills names the method, such as truncate; empty keeps rows.
	Refills() string
}

// Creator configs are of writers that may create their target with their first items; partitioned steps do it
// before (itemextra.PartsPreparer).
type Creator interface {
	Creates() bool
}
