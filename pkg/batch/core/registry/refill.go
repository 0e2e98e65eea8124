package registry

// StepNamer is implemented by configs that name a step of their own job. An unknown step is refused
// when the file is loaded.
type StepNamer interface {
	// NamesStep returns the key of the config, and the step that it names, or "".
	NamesStep() (key, step string)
}

// FilesNamer is implemented by configs that use the files read by a step of their own job: a step that
// NamesStep names and that lists no files is refused when the file is loaded.
type FilesNamer interface {
	StepNamer
	NamesFilesOf()
}

// FileLister is implemented by the configs of readers that keep the list of their files. Partitions of
// parts with a `path` keep it too.
type FileLister interface{ ListsFiles() }

// NotResumable is implemented by the configs of readers that may be unable to resume: a restart after a
// commit is refused, and so are partitions, since one that fails would refuse all others.
type NotResumable interface {
	// CannotResume returns the key of the config that prevents resuming; empty if it resumes.
	CannotResume() (key string)
}

// Refiller is implemented by the configs of writers that may empty their target and fill it again, such
// as the rows of a table (rule TW4). Two writers of such a target, and partitions, are refused: each
// would remove the rows of the others.
type Refiller interface {
	// Refills names the method, such as truncate; empty keeps the existing rows.
	Refills() string
}

// Creator is implemented by the configs of writers that may create their target in the transaction of
// their first items. Partitioned steps create it before their parts run (item.PartsPreparer).
type Creator interface {
	Creates() bool
}
