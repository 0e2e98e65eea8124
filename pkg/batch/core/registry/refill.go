package registry

// StepNamer is implemented by configs that name a step of their own job. One that is not there
// is refused when the file is loaded.
type StepNamer interface {
	// NamesStep returns the key of the config, and the step that it names; empty: none.
	NamesStep() (key, step string)
}

// FilesNamer is implemented by configs that deal with the files which a step of their own job has
// read: a step that NamesStep names and that lists no files is refused when the file is loaded.
type FilesNamer interface {
	StepNamer
	NamesFilesOf()
}

// FileLister is implemented by the configs of readers that keep the list of the files which they
// read. Partitions whose part has a `path` keep it as well.
type FileLister interface{ ListsFiles() }

// NotResumable is implemented by the configs of readers that may not be able to resume: a restart
// after a commit is refused, and so are partitions, of which one that fails would refuse all others.
type NotResumable interface {
	// CannotResume returns the key of the config that makes it so; empty: it resumes.
	CannotResume() (key string)
}

// Refiller is implemented by the configs of writers that may remove what their target holds
// and fill it anew, such as the rows of a table (rule TW4). Two writers of such a target,
// and partitions, are refused: each would remove what the others wrote.
type Refiller interface {
	// Refills names the way, such as truncate; empty: what is there stays.
	Refills() string
}

// Creator is implemented by the configs of writers that may create their target in the transaction of
// their first items. Partitioned steps have it created before their parts run (item.PartsPreparer).
type Creator interface {
	Creates() bool
}
